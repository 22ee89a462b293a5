package spoke

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Deletion is the answer of the API server to a deletion.
type Deletion struct {
	// Gone reports that nothing is left of the object; otherwise finalizers or its grace period hold it.
	Gone bool
	// Grace is its grace period.
	Grace time.Duration
	// Finalizers are those of the object.
	Finalizers []string
	// Body is the body of the answer.
	Body []byte
}

// Delete deletes the object if it still has the UID and, when given, the resourceVersion. The answer tells at once
// whether the object is gone; the dynamic client drops it, so the request is sent with the client below.
func (o Object) Delete(ctx context.Context, uid types.UID, version string) (Deletion, error) {
	background := metav1.DeletePropagationBackground
	preconditions := &metav1.Preconditions{UID: &uid}
	if version != "" {
		preconditions.ResourceVersion = &version
	}
	answer := o.client.requests.Delete().AbsPath(o.segments()...).Body(&metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: preconditions, DryRun: o.client.dryRun,
	}).Do(ctx)
	if err := answer.Error(); err != nil {
		return Deletion{}, err
	}
	body, err := answer.Raw()
	if err != nil {
		return Deletion{}, err
	}
	return readDeletion(body), nil
}

// segments is the path of the object on the API server.
func (o Object) segments() []string {
	path := []string{"apis", o.resource.Group, o.resource.Version}
	if o.resource.Group == "" {
		path = []string{"api", o.resource.Version}
	}
	if o.id.Namespace != "" {
		path = append(path, "namespaces", o.id.Namespace)
	}
	return append(path, o.resource.Resource, o.id.Name)
}

// readDeletion reads the answer to a deletion. When nothing is left the API server answers with a Status or, for some
// kinds, with the object as it was; when something holds the object, with the object and its deletion timestamp. Any
// other answer leaves it to the watch.
func readDeletion(answer []byte) Deletion {
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
		return Deletion{Body: answer}
	}
	d := Deletion{
		Finalizers: said.Metadata.Finalizers, Body: answer,
		Grace: time.Duration(said.Metadata.GracePeriod) * time.Second,
	}
	if said.APIVersion == "v1" && said.Kind == "Status" {
		d.Gone = said.Status == metav1.StatusSuccess
		return d
	}
	d.Gone = said.Metadata.UID != "" && said.Metadata.DeletionTimestamp == nil && len(d.Finalizers) == 0
	return d
}
