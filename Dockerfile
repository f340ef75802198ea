# pg_io_probe in the official image of PostgreSQL:
#
#     docker build --build-arg POSTGRES=18-bookworm -t postgres-io-probe .
#
# tools/dockerfile.sh runs these steps on a new Debian, all but the first RUN of Rust; no container engine has run them.
ARG POSTGRES=18-bookworm

FROM postgres:$POSTGRES AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
    build-essential ca-certificates clang curl libclang-dev libicu-dev pkg-config postgresql-server-dev-$PG_MAJOR
RUN curl -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
ENV PATH=/root/.cargo/bin:$PATH
COPY . /src
WORKDIR /src
RUN make PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config
RUN make install DESTDIR=/stage PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config

FROM postgres:$POSTGRES
COPY --from=build /stage/ /
