package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Ask requests a path of a port of a pod, with the scheme http or https, and returns the answer, whatever its status.
// The request arrives on the loopback interface of the pod, as that of "kubectl port-forward" does.
func (c *Cluster) Ask(ctx context.Context, namespace, pod, scheme string, port int, path string) (string, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.Admin)
	if err != nil {
		return "", fmt.Errorf("building a client: %w", err)
	}
	to := c.Kube.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward")
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, to.URL())
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop,
		ready, io.Discard, io.Discard)
	if err != nil {
		return "", fmt.Errorf("forwarding a port of pod %s: %w", pod, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		return "", fmt.Errorf("forwarding port %d of pod %s: %w", port, pod, err)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", fmt.Errorf("forwarding port %d of pod %s: %w", port, pod, err)
	}
	return get(ctx, fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, ports[0].Local, path))
}

// get requests a URL of this machine. The certificate is one that the pod made itself.
func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("making a request: %w", err)
	}
	anybody := &tls.Config{InsecureSkipVerify: true}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: anybody, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking a pod: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", fmt.Errorf("reading the answer of a pod: %w", err)
	}
	return string(text), nil
}
