# A stand-in for golang:1.26-bookworm, for machines that reach no image registry: the machine's own Go tree, and its
# certificate authorities, which may include those of a local proxy. Used in build stages only.
ARG DEBIAN
FROM ${DEBIAN}
COPY golang /usr/local/go
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    GOTOOLCHAIN=local
RUN go version
WORKDIR /go
