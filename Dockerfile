# Static, non-root images of the agent and the hub manager:
#   docker build --target agent --build-arg VERSION=v0.1.0 -t spokelet:v0.1.0 .
#   docker build --target hub --build-arg VERSION=v0.1.0 -t spokelet-hub:v0.1.0 .
#   docker build --target hello-agent -t hello-agent:v0.1.0 .    (the agent of the sample add-on)

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unversioned
ENV CGO_ENABLED=0
RUN mkdir /out && for program in spokelet spokelet-hub; do \
      go build -trimpath \
        -ldflags "-s -w -X github.com/spokelet/spokelet/internal/version.version=${VERSION}" \
        -o /out/$program ./cmd/$program; \
    done && go build -trimpath -ldflags "-s -w" -o /out/hello-agent ./test/hello
# The names by which the Deployments of an OCM Klusterlet call the agents.
RUN mkdir /out/names && for name in registration work registration-operator; do ln -s /spokelet /out/names/$name; done

FROM scratch AS agent
LABEL org.opencontainers.image.title="spokelet" \
      org.opencontainers.image.description="Spoke side of add-on management for Kubernetes fleets" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/spokelet /spokelet
COPY --from=build /out/names/ /
USER 65532:65532
ENTRYPOINT ["/spokelet"]

FROM scratch AS hub
LABEL org.opencontainers.image.title="spokelet-hub" \
      org.opencontainers.image.description="Hub side of add-on management for Kubernetes fleets" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/spokelet-hub /spokelet-hub
USER 65532:65532
ENTRYPOINT ["/spokelet-hub"]

FROM scratch AS hello-agent
LABEL org.opencontainers.image.title="hello-agent" \
      org.opencontainers.image.description="Agent of the sample add-on hello" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/hello-agent /hello-agent
USER 65532:65532
ENTRYPOINT ["/hello-agent"]
