"""One Markdown (Jinja2) file a prompt."""
