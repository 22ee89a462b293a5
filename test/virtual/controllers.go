package virtual

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	// issuedEarlier is how long before now certificates begin to be valid, and keptRequest how long a request is kept
	// after it was decided, both as kube-controller-manager has it.
	issuedEarlier, keptRequest = 5 * time.Minute, time.Hour
	// life is how long certificates are valid: each is renewed in a day of three hours.
	life = 3 * time.Hour
)

// follow calls handle with each object of a list as it is, and whenever it changes, until ctx ends.
func follow[O client.Object](
	ctx context.Context, c client.WithWatch, list client.ObjectList, handle func(watch.EventType, O),
	options ...client.ListOption,
) {
	for ctx.Err() == nil {
		events, err := c.Watch(ctx, list, options...)
		if err != nil {
			continue // only ctx can end it
		}
		for event := range events.ResultChan() {
			if object, ok := event.Object.(O); ok {
				handle(event.Type, object)
			}
		}
		events.Stop()
	}
}

// signer plays the controllers of the hub that sign and remove certificate requests.
type signer struct {
	world *World
	ca    *sandbox.CA
}

func newSigner(w *World) (*signer, error) {
	ca, err := sandbox.NewCA("signer", nil)
	return &signer{w, ca}, err
}

func (s *signer) start() {
	go follow(s.world.ctx, s.world.admin, &certificatesv1.CertificateSigningRequestList{}, s.handle)
}

// handle signs a request that is approved.
func (s *signer) handle(kind watch.EventType, request *certificatesv1.CertificateSigningRequest) {
	approves := func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	}
	approved := slices.ContainsFunc(request.Status.Conditions, approves)
	if kind == watch.Deleted || !approved || len(request.Status.Certificate) > 0 ||
		request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return
	}
	subject, err := s.sign(request)
	if err != nil {
		s.world.judge.violated("signing %s: %v", request.Name, err)
		return
	}
	s.world.identify(subject)
	if err := s.world.admin.Status().Update(s.world.ctx, request); err != nil {
		return // another client was faster, and the next event follows
	}
	time.AfterFunc(keptRequest, func() { _ = s.world.admin.Delete(s.world.ctx, request) })
}

// sign puts the certificate into a request, and returns whom it is for.
func (s *signer) sign(request *certificatesv1.CertificateSigningRequest) (pkix.Name, error) {
	lasts := life
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		lasts = min(lasts, time.Duration(*seconds)*time.Second)
	}
	now := time.Now().Add(s.world.skews[request.Labels[names.LabelClusterName]])
	signed, err := s.ca.SignRequest(request.Spec.Request, now.Add(-issuedEarlier), now.Add(lasts))
	if err != nil {
		return pkix.Name{}, err
	}
	certificates, err := cert.ParseCertsPEM(signed)
	if err != nil {
		return pkix.Name{}, fmt.Errorf("reading what was signed: %w", err)
	}
	s.world.judge.count(certificate)
	request.Status.Certificate = signed
	return certificates[0].Subject, nil
}

// identify lets the requests of an agent carry the identity of the certificate that it gets.
func (w *World) identify(subject pkix.Name) {
	identity, ofCluster := csr.ParseClusterUser(subject.CommonName)
	if c := w.byName[identity.Cluster]; ofCluster && c != nil {
		c.toHub.use(w.hub.Transport(subject.CommonName, append(subject.Organization, "system:authenticated")...))
	}
}

// badImage starts the images that do not run on the clusters that break.
const badImage = "bad-"

func isBad(image string) bool { return strings.HasPrefix(image, badImage) }

// runWorkloads plays what runs Deployments on a cluster: they are available after a while, unless they break.
func (w *World) runWorkloads(c *Cluster) {
	handle := func(kind watch.EventType, d *appsv1.Deployment) {
		if kind == watch.Deleted || d.Status.ObservedGeneration == d.Generation {
			return
		}
		time.AfterFunc(podStart(c.Name, d.Name), func() { c.settle(w.ctx, client.ObjectKeyFromObject(d), d.Generation) })
	}
	go follow(w.ctx, c.admin, &appsv1.DeploymentList{}, handle)
}

// settle gives a Deployment the status that it has when its pods had time to start. A newer one has a timer of its own.
func (c *Cluster) settle(ctx context.Context, key client.ObjectKey, generation int64) {
	var d appsv1.Deployment
	if err := c.admin.Get(ctx, key, &d); err != nil || d.Generation != generation {
		return
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1}
	available := corev1.ConditionFalse
	if !isBad(imageOf(&d)) || !c.breaks(d.Name) {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas, available = 1, 1, corev1.ConditionTrue
	}
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available}}
	if err := c.admin.Status().Update(ctx, &d); err != nil && ctx.Err() == nil {
		time.AfterFunc(time.Second, func() { c.settle(ctx, key, generation) })
	}
}

// podStart is how long the pods of an add-on take on a cluster: five seconds to a minute.
func podStart(cluster, addOn string) time.Duration {
	return 5*time.Second + time.Duration(mixed(cluster, addOn, "start")%55)*time.Second
}

// breaks reports whether bad images of an add-on do not run on the cluster: every fourth.
func (c *Cluster) breaks(addOn string) bool { return mixed(c.Name, addOn, "breaks")%4 == 0 }
