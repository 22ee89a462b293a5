package virtual

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// badImage starts the images that do not run on the clusters that break, and sickImage those that run there for a
// moment.
const badImage, sickImage = "bad-", "sick-"

func isBad(image string) bool { return strings.HasPrefix(image, badImage) || isSick(image) }

func isSick(image string) bool { return strings.HasPrefix(image, sickImage) }

// sickAfter is how long pods with a sick image run: less than the time in which a rollout waits for such failures.
const sickAfter = soak / 3

// runWorkloads plays what runs Deployments and Jobs on a cluster. A Deployment has no pod that is ready, or pods of its
// earlier version, until it is available after a while, unless it breaks.
func (w *World) runWorkloads(c *Cluster) {
	deployment := func(kind watch.EventType, d *appsv1.Deployment) {
		if kind == watch.Deleted || d.Status.ObservedGeneration == d.Generation {
			return
		}
		key, start := client.ObjectKeyFromObject(d), podStart(c.Name, d.Name)
		c.settle(w.ctx, key, d.Generation, starting)
		time.AfterFunc(start, func() { c.settle(w.ctx, key, d.Generation, started) })
		if isSick(imageOf(d)) {
			time.AfterFunc(start+sickAfter, func() { c.settle(w.ctx, key, d.Generation, afterwards) })
		}
	}
	job := func(kind watch.EventType, j *batchv1.Job) {
		if kind != watch.Deleted && len(j.Status.Conditions) == 0 {
			time.AfterFunc(podStart(c.Name, j.Name), func() { c.complete(w.ctx, client.ObjectKeyFromObject(j)) })
		}
	}
	go follow(w.ctx, c.admin, &appsv1.DeploymentList{}, deployment)
	go follow(w.ctx, c.admin, &batchv1.JobList{}, job)
}

// complete lets a Job be complete.
func (c *Cluster) complete(ctx context.Context, key client.ObjectKey) {
	var j batchv1.Job
	if err := c.admin.Get(ctx, key, &j); err != nil {
		return // it went
	}
	now := metav1.Now()
	j.Status = batchv1.JobStatus{
		Succeeded: 1, StartTime: &now, CompletionTime: &now,
		Conditions: []batchv1.JobCondition{{
			Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now,
		}},
	}
	if err := c.admin.Status().Update(ctx, &j); err != nil && ctx.Err() == nil {
		time.AfterFunc(time.Second, func() { c.complete(ctx, key) })
	}
}

// stage is how far the pods of a Deployment are.
type stage int

const (
	starting stage = iota
	started
	afterwards
)

// settle gives a Deployment the status that it has in a stage of its pods. A newer one has timers of its own.
func (c *Cluster) settle(ctx context.Context, key client.ObjectKey, generation int64, s stage) {
	var d appsv1.Deployment
	if err := c.admin.Get(ctx, key, &d); err != nil || d.Generation != generation {
		return
	}
	d.Status = c.statusOf(&d, s)
	if err := c.admin.Status().Update(ctx, &d); err != nil && ctx.Err() == nil {
		time.AfterFunc(time.Second, func() { c.settle(ctx, key, generation, s) })
	}
}

// statusOf returns the status of a Deployment in a stage of its pods. Numbers that are 0 are omitted, as Kubernetes
// does.
func (c *Cluster) statusOf(d *appsv1.Deployment, s stage) appsv1.DeploymentStatus {
	before := d.Status
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1}
	breaks := c.breaks(d.Name)
	available := corev1.ConditionFalse
	switch image := imageOf(d); {
	case s == started && (!isBad(image) || isSick(image) || !breaks), s == afterwards && !breaks:
		status.ReadyReplicas, status.AvailableReplicas, available = 1, 1, corev1.ConditionTrue
	case s != afterwards && kindOf(d.Name) == foreign && before.AvailableReplicas > 0:
		// A rolling update: the pod of the earlier version stays until the next one is ready.
		status.Replicas, status.ReadyReplicas, status.AvailableReplicas = 2, 1, 1
		available = corev1.ConditionTrue
	}
	status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available}}
	return status
}

// podStart is how long the pods of an add-on take on a cluster: five seconds to a minute.
func podStart(cluster, addOn string) time.Duration {
	return 5*time.Second + time.Duration(mixed(cluster, addOn, "start")%55)*time.Second
}

// breaks reports whether bad images of an add-on do not run on the cluster: every fourth.
func (c *Cluster) breaks(addOn string) bool { return mixed(c.Name, addOn, "breaks")%4 == 0 }
