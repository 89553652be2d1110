# The front end as an image, for `docker run -i --rm -v /var/run/docker.sock:/var/run/docker.sock … mcp-agents --provider codex`.
# It works with the classic builder and with BuildKit.
ARG GO_BASE=golang:1.26-bookworm

FROM ${GO_BASE} AS build
LABEL mcp-agents.stage="front-end"
# Read by go itself; unset means its default.
ARG GOPROXY
ARG GOSUMDB
ARG GOFLAGS
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY images images
COPY internal internal
# The init goes into the program, so that it can build the images of sandboxes, and beside it: the scripted model runs in
# a container of this image.
RUN set -eu; \
    export CGO_ENABLED=0; \
    mkdir -p images/init; \
    init="images/init/sandbox-init-linux-$(go env GOARCH)"; \
    go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$init" ./cmd/sandbox-init; \
    go build -tags embedinit -trimpath -buildvcs=false -ldflags '-s -w' -o /out/usr/local/bin/mcp-agents ./cmd/mcp-agents; \
    install -m 0755 "$init" /out/usr/local/bin/sandbox-init; \
    install -d -m 1777 /out/tmp; \
    install -D -m 0644 /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ca-certificates.crt

FROM scratch
COPY --from=build /out/ /
LABEL mcp-agents.protocol="1"
ENV PATH=/usr/local/bin
ENTRYPOINT ["/usr/local/bin/mcp-agents"]
