# A stand-in for node:22-bookworm-slim, for machines that reach no image registry: the machine's own node and npm where
# they run here, Debian's otherwise (a node that is linked with libraries of its own, an npm in pieces). The machine's
# certificate authorities may include those of a local proxy. Used in build stages only.
ARG DEBIAN
FROM ${DEBIAN}
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY node /opt/node
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
RUN ln -s /opt/node/node /usr/local/bin/node; \
    ln -s /opt/node/npm/bin/npm-cli.js /usr/local/bin/npm; \
    if node --version && npm --version; then exit 0; fi; \
    rm -rf /opt/node /usr/local/bin/node /usr/local/bin/npm; \
    apt-get update && apt-get install -y --no-install-recommends nodejs npm && rm -rf /var/lib/apt/lists/* && \
    node --version && npm --version
