# Ramify itself: `docker build --tag ramify .`. How a container is run is in docs/installation.md.
ARG BASE=python:3.12-slim
FROM $BASE AS build
COPY . /src
RUN python3 -m venv /opt/ramify && /opt/ramify/bin/pip install --no-cache-dir /src

FROM $BASE
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/ramify /opt/ramify
ENV PATH=/opt/ramify/bin:$PATH
VOLUME /root/.local/state/ramify
WORKDIR /repo
ENTRYPOINT ["ramify"]
