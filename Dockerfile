# For those who have Docker; `make image` needs neither it nor a registry.
#   docker build -t REGISTRY/tidemark:TAG . && docker push REGISTRY/tidemark:TAG
#   make demo CONTEXT=my-cluster IMAGE=REGISTRY/tidemark:TAG
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w" -o /out/ ./cmd/manager ./cmd/replica \
 && echo "nonroot:x:65532:65532:nonroot:/:/sbin/nologin" >/out/passwd

# Nothing but the binaries: no shell, no package manager, no root.
FROM scratch
COPY --from=build /out/passwd /etc/passwd
COPY --from=build /out/manager /manager
COPY --from=build /out/replica /replica
USER 65532:65532
