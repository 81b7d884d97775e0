# fedactors and what it needs, for the processor alone: docs/how-to/docker.md
#
#   docker build -t fedactors .
#   docker run --rm --shm-size=2g -v "$PWD:/work" fedactors run quickstart
FROM python:3.11-slim

# The wheels of PyTorch without CUDA, which are smaller by gigabytes; another index brings CUDA:
# docker build --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu128 .
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir --index-url "$TORCH_INDEX" torch torchvision

COPY pyproject.toml README.md CHANGELOG.md CITATION.cff LICENSE /source/
COPY fedactors /source/fedactors
COPY scenarios /source/scenarios
COPY traces /source/traces
COPY examples/own /source/examples/own
RUN pip install --no-cache-dir "/source[fetch]" && rm -r /source

# What is fetched, and what runs write, belongs on volumes, which any user may write to (docker run --user).
# Ray needs a home folder that the user can write to.
RUN useradd --create-home fedactors && mkdir /work /data && chmod 1777 /work /data
USER fedactors
ENV FEDACTORS_HOME=/data OMP_NUM_THREADS=1
WORKDIR /work
ENTRYPOINT ["fedactors"]
CMD ["--help"]
