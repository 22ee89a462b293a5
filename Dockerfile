# Static, non-root images of the agent and the hub manager, for people with a container engine. "make image" builds the
# same without one (docs/operations/images.md), and a test compares both.
#   docker build --target agent --build-arg VERSION=v0.1.0 -t spokelet:v0.1.0 .
#   docker build --target hub --build-arg VERSION=v0.1.0 -t spokelet-hub:v0.1.0 .
#   docker build --target hello-agent -t hello-agent:v0.1.0 .    (the agent of the sample add-on)

# It compiles on the machine's own platform for the one of the image.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unversioned
ARG TARGETARCH
ENV CGO_ENABLED=0
# Root certificates from a Go module.
RUN mkdir /out && cd tools && go run ./image/cmd/roots > /out/ca-certificates.crt
RUN export GOOS=linux GOARCH=$TARGETARCH && for program in spokelet spokelet-hub; do \
      go build -trimpath -buildvcs=false \
        -ldflags "-s -w -X github.com/spokelet/spokelet/internal/version.version=${VERSION}" \
        -o /out/$program ./cmd/$program; \
    done && go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/hello-agent ./test/hello
# The names by which the Deployments of an OCM Klusterlet call the agents.
RUN mkdir /out/names && for name in registration registration-operator work; do ln -s /spokelet /out/names/$name; done

FROM scratch AS agent
ARG VERSION=unversioned
ARG REVISION=unknown
LABEL org.opencontainers.image.title="spokelet" \
      org.opencontainers.image.description="Spoke side of add-on management for Kubernetes fleets" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/spokelet /spokelet
COPY --from=build /out/names/ /
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/spokelet"]

FROM scratch AS hub
ARG VERSION=unversioned
ARG REVISION=unknown
LABEL org.opencontainers.image.title="spokelet-hub" \
      org.opencontainers.image.description="Hub side of add-on management for Kubernetes fleets" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/spokelet-hub /spokelet-hub
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/spokelet-hub"]

FROM scratch AS hello-agent
ARG VERSION=unversioned
ARG REVISION=unknown
LABEL org.opencontainers.image.title="hello-agent" \
      org.opencontainers.image.description="Agent of the sample add-on hello" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/hello-agent /hello-agent
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/hello-agent"]
