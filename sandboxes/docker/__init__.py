"""The `docker` sandbox: containers of a Docker engine, with images pulled and removed as needed."""
