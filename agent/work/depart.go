package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// requestsTo is the client of the spoke below the dynamic one, with the encoding of that.
func requestsTo(config *rest.Config, client *http.Client) (rest.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.APIPath = nil, "/every-request-has-a-path-of-its-own"
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("building the client of the spoke: %w", err)
	}
	return requests, nil
}

// departure is what the API server says of an object that it was asked to delete.
type departure struct {
	// gone tells that nothing is left of it; otherwise it goes when its finalizers and its grace let it.
	gone bool
	// since is its deletion timestamp, zero when the answer has none; grace is how long after the request that is.
	since time.Time
	grace time.Duration
	// finalizers are those that hold it.
	finalizers []string
	// answer is the body of the answer.
	answer []byte
}

// retire deletes an object if it still has the UID and, when given, the resourceVersion. The dynamic client throws the
// answer away, which alone says at once whether the object is gone: so the request is made with the client below it.
func (s spoke) retire(ctx context.Context, resource schema.GroupVersionResource, id identity,
	uid types.UID, version string,
) (departure, error) {
	background := metav1.DeletePropagationBackground
	guard := &metav1.Preconditions{UID: &uid}
	if version != "" {
		guard.ResourceVersion = &version
	}
	answer := s.requests.Delete().AbsPath(segments(resource, id)...).
		Body(&metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: guard}).Do(ctx)
	if err := answer.Error(); err != nil {
		return departure{}, err
	}
	body, err := answer.Raw()
	if err != nil {
		return departure{}, err
	}
	return departed(body), nil
}

// segments is the path of an object on the API server.
func segments(resource schema.GroupVersionResource, id identity) []string {
	path := []string{"apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"api", resource.Version}
	}
	if id.Namespace != "" {
		path = append(path, "namespaces", id.Namespace)
	}
	return append(path, resource.Resource, id.Name)
}

// departed reads the answer to a deletion. The API server answers with a Status, or for some kinds with the object as
// it was, when nothing is left, and with the object and its deletion timestamp when something holds it. An answer that
// says neither leaves it to the watch.
func departed(answer []byte) departure {
	var said struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Status     any    `json:"status"`
		Metadata   struct {
			UID               types.UID    `json:"uid"`
			DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
			GracePeriod       int64        `json:"deletionGracePeriodSeconds"`
			Finalizers        []string     `json:"finalizers"`
		} `json:"metadata"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return departure{answer: answer}
	}
	d := departure{
		finalizers: said.Metadata.Finalizers, answer: answer,
		grace: time.Duration(said.Metadata.GracePeriod) * time.Second,
	}
	if said.Metadata.DeletionTimestamp != nil {
		d.since = said.Metadata.DeletionTimestamp.Time
	}
	if said.APIVersion == "v1" && said.Kind == "Status" {
		d.gone = said.Status == metav1.StatusSuccess
		return d
	}
	d.gone = said.Metadata.UID != "" && d.since.IsZero() && len(d.finalizers) == 0
	return d
}
