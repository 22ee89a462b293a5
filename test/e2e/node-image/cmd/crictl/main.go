// Command crictl has the read-only verbs of the program of that name in cri-tools that kind, or a person who looks at a
// node, needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// timeout is how long a verb may take.
const timeout = 20 * time.Second

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crictl:", err)
		os.Exit(1)
	}
}

// node is the container runtime of this node.
type node struct {
	runtime cri.RuntimeServiceClient
	images  cri.ImageServiceClient
	out     io.Writer
}

func run(args []string, out io.Writer) (err error) {
	if len(args) == 0 {
		return errors.New("usage: crictl images|inspecti IMAGE|ps|pods|logs ID|version")
	}
	socket := os.Getenv("CONTAINER_RUNTIME_ENDPOINT")
	if socket == "" {
		socket = "unix:///run/containerd/containerd.sock"
	}
	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	n := node{runtime: cri.NewRuntimeServiceClient(conn), images: cri.NewImageServiceClient(conn), out: out}
	verb, args := args[0], args[1:]
	switch verb {
	case "images":
		return n.listImages(ctx)
	case "ps":
		return n.listContainers(ctx)
	case "pods":
		return n.listPods(ctx)
	case "version", "--version", "info":
		return n.version(ctx)
	case "inspecti", "logs":
		if len(args) == 0 {
			return fmt.Errorf("%s needs an argument", verb)
		}
		if verb == "logs" {
			return n.logs(ctx, args[0])
		}
		return n.inspectImage(ctx, args[0])
	}
	return fmt.Errorf("unknown verb %q", verb)
}

func (n node) inspectImage(ctx context.Context, name string) error {
	r, err := n.images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
	if err != nil {
		return err
	}
	if r.Image == nil {
		return fmt.Errorf("no such image %q present", name)
	}
	encoder := json.NewEncoder(n.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string]any{"status": map[string]any{
		"id": r.Image.Id, "repoTags": r.Image.RepoTags, "repoDigests": r.Image.RepoDigests,
		"size": fmt.Sprint(r.Image.Size), "pinned": r.Image.Pinned,
	}})
}

func (n node) listImages(ctx context.Context) error {
	r, err := n.images.ListImages(ctx, &cri.ListImagesRequest{})
	if err != nil {
		return err
	}
	for _, image := range r.Images {
		tags := slices.Sorted(slices.Values(image.RepoTags))
		if len(tags) == 0 {
			tags = []string{"<none>"}
		}
		for _, tag := range tags {
			fmt.Fprintf(n.out, "%-64s %-14s %d MB\n", tag, short(image.Id), image.Size/1_000_000)
		}
	}
	return nil
}

func (n node) listContainers(ctx context.Context) error {
	r, err := n.runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return err
	}
	for _, c := range r.Containers {
		fmt.Fprintf(n.out, "%-14s %-28s %-20s attempt=%d pod=%s/%s\n", short(c.Id), c.Metadata.Name, c.State,
			c.Metadata.Attempt, c.Labels["io.kubernetes.pod.namespace"], c.Labels["io.kubernetes.pod.name"])
	}
	return nil
}

func (n node) listPods(ctx context.Context) error {
	r, err := n.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	for _, p := range r.Items {
		fmt.Fprintf(n.out, "%-14s %-20s %s/%s\n", short(p.Id), p.State, p.Metadata.Namespace, p.Metadata.Name)
	}
	return nil
}

// logs prints the log of the first container whose id begins with id.
func (n node) logs(ctx context.Context, id string) error {
	r, err := n.runtime.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(r.Containers, func(c *cri.Container) bool { return strings.HasPrefix(c.Id, id) })
	if i < 0 {
		return fmt.Errorf("no container %s", id)
	}
	status, err := n.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: r.Containers[i].Id})
	if err != nil {
		return err
	}
	log, err := os.Open(status.Status.LogPath)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(n.out, log)
	return err
}

func (n node) version(ctx context.Context) error {
	r, err := n.runtime.Version(ctx, &cri.VersionRequest{})
	if err != nil {
		return err
	}
	fmt.Fprintln(n.out, r.RuntimeName, r.RuntimeVersion, r.RuntimeApiVersion)
	return nil
}

// short returns the beginning of an id, as people read it.
func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), 13)]
}
