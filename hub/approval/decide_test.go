package approval

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	signer    = "example.com/signer-test"
	bootstrap = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func custom() addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner,
		CustomSigner: &addonv1beta1.CustomSignerConfig{
			SignerName: signer,
			Subject: addonv1beta1.Subject{
				BaseSubject: addonv1beta1.BaseSubject{User: "user-test", Groups: []string{"group-test"}},
			},
		},
	}
}

func kube() addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient}
}

// requestFor builds a request object as an agent would.
func requestFor(t *testing.T, r csrs.Request, requester string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := csrs.NewKey()
	require.NoError(t, err)
	csr, err := r.Build(key)
	require.NoError(t, err)
	csr.Name, csr.UID = r.GenerateName+"x1", types.UID("uid-"+r.GenerateName)
	csr.Spec.Username = requester
	csr.CreationTimestamp = metav1.NewTime(now.Add(-10 * time.Second))
	return csr
}

// addonRequest builds the request of add-on hello on c1 for a registration.
func addonRequest(
	t *testing.T, r addonv1beta1.RegistrationConfig, requester string,
) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	request, err := csrs.ForAddon("c1", "hello", r)
	require.NoError(t, err)
	return requestFor(t, request, requester)
}

func withCondition(
	csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType,
) *certificatesv1.CertificateSigningRequest {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(now.Add(-4 * time.Second)),
	})
	return csr
}

// accepted is cluster c1, which the hub accepts.
func accepted() *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
}

// addonsFacts are the facts of a request of add-on hello on c1 of which nothing is missing.
func addonsFacts(csr *certificatesv1.CertificateSigningRequest) facts {
	return facts{now: now, home: names.NamespaceHub, csr: csr, stage: stageOf(csr), addon: &addonFacts{
		ours: true, cluster: accepted(),
		addon:         &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"}},
		registrations: []addonv1beta1.RegistrationConfig{kube(), custom()},
		ca:            addon.SigningCA{Secret: types.NamespacedName{Name: "ca"}}, signs: true,
	}}
}

// Shows: registration/cluster-request-judged
func TestStages(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*certificatesv1.CertificateSigningRequest)
		r     addonv1beta1.RegistrationConfig
		want  stage
	}{
		"a new request is open": {func(*certificatesv1.CertificateSigningRequest) {}, kube(), stageOpen},
		"a denied one is finished": {func(c *certificatesv1.CertificateSigningRequest) {
			withCondition(c, certificatesv1.CertificateDenied)
		}, kube(), stageFinished},
		"an approved and failed one is finished": {func(c *certificatesv1.CertificateSigningRequest) {
			withCondition(withCondition(c, certificatesv1.CertificateApproved), certificatesv1.CertificateFailed)
		}, custom(), stageFinished},
		"an approved one of Kubernetes is finished for us": {func(c *certificatesv1.CertificateSigningRequest) {
			withCondition(c, certificatesv1.CertificateApproved)
		}, kube(), stageFinished},
		"an approved one of a custom signer is unsigned": {func(c *certificatesv1.CertificateSigningRequest) {
			withCondition(c, certificatesv1.CertificateApproved)
		}, custom(), stageUnsigned},
		"one with a certificate is finished": {func(c *certificatesv1.CertificateSigningRequest) {
			withCondition(c, certificatesv1.CertificateApproved)
			c.Status.Certificate = []byte("x")
		}, custom(), stageFinished},
		"a condition of an unknown type says nothing": {func(c *certificatesv1.CertificateSigningRequest) {
			withCondition(c, "Looked at")
		}, custom(), stageOpen},
	} {
		t.Run(name, func(t *testing.T) {
			csr := addonRequest(t, tc.r, csrs.ClusterUser("c1", "a"))
			tc.spoil(csr)
			assert.Equal(t, tc.want, stageOf(csr))
			if tc.want == stageFinished {
				assert.Empty(t, indexKeys(csr))
			} else {
				assert.Equal(t, []string{"c1", "c1/hello"}, indexKeys(csr))
			}
		})
	}
	assert.Equal(t, []string{"c2"}, indexKeys(requestFor(t, csrs.ForCluster("c2", "a"), "x")))
	assert.Empty(t, indexKeys(&corev1.Secret{}))
}

// Shows: registration/cluster-request-judged, registration/add-on-request-judged, registration/signing-judged
// Shows: registration/template-registrations
func TestDecide(t *testing.T) {
	agent := csrs.ClusterUser("c1", "a")
	spoilt := func(change func(*addonFacts)) facts {
		f := addonsFacts(addonRequest(t, kube(), agent))
		change(f.addon)
		return f
	}
	unsigned := func(change func(*addonFacts)) facts {
		f := addonsFacts(withCondition(addonRequest(t, custom(), agent), certificatesv1.CertificateApproved))
		change(f.addon)
		return f
	}
	clusterFacts := func(requester string) facts {
		csr := requestFor(t, csrs.ForCluster("c1", "a"), requester)
		accepted := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		return facts{now: now, csr: csr, stage: stageOf(csr), trust: approve.Trust{Users: []string{bootstrap}}, cluster: accepted}
	}
	denied := func(f facts) facts {
		f.cluster = &clusterv1.ManagedCluster{}
		return f
	}
	nothing := func(*addonFacts) {}
	for name, tc := range map[string]struct {
		facts   facts
		step    step
		reason  string
		warning bool
		class   reconcile.Class
	}{
		"a finished request needs nothing": {facts: facts{now: now}},
		"an agent that renews is reviewed": {facts: clusterFacts(agent), step: stepReview},
		"an agent that is denied renews nothing": {facts: denied(clusterFacts(agent)),
			reason: approve.ReasonRenewalNotAllowed, warning: true, class: reconcile.ClassWaiting},
		"a trusted bootstrap user is approved":         {facts: clusterFacts(bootstrap), step: stepApprove},
		"also before the cluster is accepted":          {facts: denied(clusterFacts(bootstrap)), step: stepApprove},
		"somebody else waits for a person, no warning": {facts: clusterFacts("jane"), reason: approve.ReasonAwaitingApproval},
		"another agent is refused with a warning": {facts: clusterFacts(csrs.ClusterUser("c10", "a")),
			reason: approve.ReasonRequesterNotTrusted, warning: true},
		"an add-on of the agent's own cluster is approved": {facts: spoilt(nothing), step: stepApprove},
		"what could not be read is tried again": {
			facts: facts{now: now, csr: addonRequest(t, kube(), agent), stage: stageOpen, unknown: errors.New("down")},
			class: reconcile.ClassRetry},
		"an add-on that is not ready is waited for": {
			facts: facts{now: now, csr: addonRequest(t, kube(), agent), stage: stageOpen,
				unknown: fmt.Errorf("computing: %w", &addon.NotReadyError{Message: "no config yet"})},
			class: reconcile.ClassWaiting},
		"an add-on whose definition is wrong is told": {
			facts: facts{now: now, csr: addonRequest(t, kube(), agent), stage: stageOpen,
				unknown: fmt.Errorf("computing: %w", &addon.InvalidError{Message: "no such template"})},
			class: reconcile.ClassWaiting, reason: reasonAddonInvalid, warning: true},
		"an author may have a request wait": {facts: spoilt(func(a *addonFacts) {
			a.objection = fmt.Errorf("checking: %w", &addon.NotReadyError{Message: "no station yet"})
		}), reason: reasonRefusedByAddon, class: reconcile.ClassWaiting},
		"an author may refuse one": {facts: spoilt(func(a *addonFacts) {
			a.objection = &addon.InvalidError{Message: "no station here"}
		}), reason: reasonRefusedByAddon, warning: true, class: reconcile.ClassWaiting},
		"an author who cannot tell is asked again": {facts: spoilt(func(a *addonFacts) { a.objection = errors.New("down") }),
			class: reconcile.ClassRetry},
		"an add-on of nobody here is left alone": {facts: spoilt(func(a *addonFacts) { *a = addonFacts{} })},
		"a missing cluster is told": {facts: spoilt(func(a *addonFacts) { a.cluster = nil }),
			reason: reasonClusterNotFound, warning: true},
		"a cluster that is not accepted is told": {facts: spoilt(func(a *addonFacts) {
			a.cluster = &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
		}), reason: reasonClusterNotAccepted, warning: true},
		"a missing add-on is told": {facts: spoilt(func(a *addonFacts) { a.addon = nil }),
			reason: reasonAddonNotFound, warning: true},
		"an add-on that registers nothing is told": {facts: spoilt(func(a *addonFacts) { a.registrations = nil }),
			reason: approve.ReasonSignerNotExpected, warning: true},
		"the agent of cluster10 gets nothing of cluster1": {
			facts:  addonsFacts(addonRequest(t, kube(), csrs.ClusterUser("c10", "a"))),
			reason: approve.ReasonRequesterNotTrusted, warning: true},
		"an approved request of our signer is signed":   {facts: unsigned(nothing), step: stepSign},
		"a signer without a CA here is somebody else's": {facts: unsigned(func(a *addonFacts) { a.signs = false })},
		"an approved request with other content is not signed": {
			facts:  unsigned(func(a *addonFacts) { a.registrations[1].CustomSigner.Subject.User = "other" }),
			reason: reasonNotSigned, warning: true},
		"an approved request of an add-on that is gone is not signed": {
			facts: unsigned(func(a *addonFacts) { a.addon = nil }), reason: reasonAddonNotFound, warning: true},
		"an approved request of a refused cluster is not signed": {
			facts:  unsigned(func(a *addonFacts) { a.cluster.Spec.HubAcceptsClient = false }),
			reason: reasonClusterNotAccepted, warning: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.facts)
			assert.Equal(t, tc.step, p.step)
			assert.Equal(t, tc.class, p.outcome.Class())
			if tc.reason == "" {
				assert.Nil(t, p.note)
				return
			}
			require.NotNil(t, p.note)
			assert.Equal(t, tc.reason, p.note.reason, p.note.message)
			assert.Equal(t, tc.warning, p.note.warning)
			if tc.facts.stage == stageUnsigned && tc.reason != reasonNotSigned {
				assert.Contains(t, p.note.message, "Not signed: ")
			}
		})
	}
}

func TestSomebodyElsesApprovalVouchesForTheRequesterOnly(t *testing.T) {
	csr := withCondition(addonRequest(t, custom(), "jane"), certificatesv1.CertificateApproved)
	p := decide(addonsFacts(csr))
	assert.Equal(t, stepSign, p.step)
	assert.Equal(t, types.NamespacedName{Namespace: names.NamespaceHub, Name: "ca"}, p.ca)
	assert.Equal(t, "user-test", p.verdict.Expected.User)
}

func TestTheStatusThatAgentsWriteDecidesNothing(t *testing.T) {
	forged := custom()
	forged.CustomSigner.Subject.User = "admin"
	f := addonsFacts(addonRequest(t, forged, csrs.ClusterUser("c1", "a")))
	f.addon.addon.Status.Registrations = []addonv1beta1.RegistrationConfig{forged}
	p := decide(f)
	assert.Equal(t, stepNone, p.step)
	require.NotNil(t, p.note)
	assert.Equal(t, approve.ReasonSubjectNotExpected, p.note.reason)
}

func TestConclude(t *testing.T) {
	agent := csrs.ClusterUser("c1", "a")
	secrets := schema.GroupResource{Resource: "secrets"}
	requests := schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
	yes := approve.Verdict{Decision: approve.DecisionApprove}
	no := approve.Verdict{Decision: approve.DecisionReview}.Reviewed(false)
	ca := types.NamespacedName{Namespace: "ns", Name: "ca"}
	wrap := func(at part, cause error) error { return &stepError{at, cause} }
	for name, tc := range map[string]struct {
		step    step
		done    result
		reason  string
		says    string
		class   reconcile.Class
		waiting time.Duration
	}{
		"approved is done": {step: stepApprove, done: result{verdict: yes}},
		"a refused review waits": {step: stepReview, done: result{verdict: no}, reason: approve.ReasonRenewalNotAllowed,
			says: "spec.hubAcceptsClient", class: reconcile.ClassWaiting, waiting: 5 * time.Second},
		"a failed review is tried again": {step: stepReview, done: result{err: errors.New("down")},
			class: reconcile.ClassRetry},
		"a conflict is a lost race": {step: stepApprove,
			done:  result{verdict: yes, err: wrap(partApproving, apierrors.NewConflict(requests, "x", nil))},
			class: reconcile.ClassLostRace},
		"a request that is gone is done": {step: stepApprove,
			done: result{verdict: yes, err: wrap(partApproving, apierrors.NewNotFound(requests, "x"))}},
		"no right to approve": {step: stepApprove,
			done:   result{verdict: yes, err: wrap(partApproving, apierrors.NewForbidden(requests, "x", nil))},
			reason: reasonApprovalForbidden, says: "the verb approve on signers " + signer,
			class: reconcile.ClassWaiting, waiting: 2 * time.Second},
		"no CA Secret": {step: stepSign,
			done:   result{verdict: yes, err: wrap(partReadingCA, apierrors.NewNotFound(secrets, "ca"))},
			reason: reasonCAMissing, says: "Secret ns/ca, which does not exist. Create it with type kubernetes.io/tls",
			class: reconcile.ClassWaiting, waiting: 2 * time.Second},
		"no right to read the CA Secret": {step: stepSign,
			done:   result{verdict: yes, err: wrap(partReadingCA, apierrors.NewForbidden(secrets, "ca", nil))},
			reason: reasonCAForbidden,
			says:   "ServiceAccount open-cluster-management-hub/addon-manager-controller-sa the verb get on that Secret",
			class:  reconcile.ClassWaiting, waiting: 2 * time.Second},
		"a CA that cannot sign": {step: stepSign,
			done:   result{verdict: yes, err: wrap(partUsingCA, errors.New("it expired"))},
			reason: reasonCAInvalid, says: "it expired", class: reconcile.ClassWaiting, waiting: 2 * time.Second},
		"a CA that serves another signer": {step: stepSign,
			done:   result{verdict: yes, err: wrap(partAskingCA, errors.New("it serves others"))},
			reason: reasonCANotServing, says: "it serves others", class: reconcile.ClassWaiting, waiting: 2 * time.Second},
		"the CA could not be read": {step: stepSign,
			done:  result{verdict: yes, err: wrap(partReadingCA, errors.New("down"))},
			class: reconcile.ClassRetry},
		"no right to sign": {step: stepSign,
			done:   result{verdict: yes, err: wrap(partStoring, apierrors.NewForbidden(requests, "x", nil))},
			reason: reasonSigningForbidden, says: "the verb sign on signers " + signer,
			class: reconcile.ClassWaiting, waiting: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			csr := addonRequest(t, custom(), agent)
			if tc.step != stepReview {
				withCondition(csr, certificatesv1.CertificateApproved)
			}
			n, outcome := conclude(facts{now: now, home: names.NamespaceHub, csr: csr}, plan{step: tc.step, ca: ca}, tc.done)
			assert.Equal(t, tc.class, outcome.Class(), outcome.Err())
			if tc.waiting > 0 {
				assert.Equal(t, now.Add(tc.waiting), outcome.Wake())
			}
			if tc.reason == "" {
				assert.Nil(t, n)
				return
			}
			require.NotNil(t, n)
			assert.True(t, n.warning)
			assert.Equal(t, tc.reason, n.reason)
			assert.Contains(t, n.message, tc.says)
			assert.NotContains(t, n.message, "\n")
		})
	}
}

func TestNextLookGrowsWithAge(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Second, 0: time.Second, 2 * time.Second: time.Second, 10 * time.Second: 5 * time.Second,
		time.Minute: 30 * time.Second, 4 * time.Minute: 2 * time.Minute, 20 * time.Hour: 2 * time.Minute,
	} {
		assert.Equal(t, now.Add(want), nextRetry(now.Add(-age), now), "age %s", age)
	}
}

func TestEventNames(t *testing.T) {
	csr := addonRequest(t, kube(), "x")
	a, b := &note{reason: "A", message: "m"}, &note{reason: "A", message: "n"}
	assert.Equal(t, eventName(csr, a), eventName(csr.DeepCopy(), &note{reason: "A", message: "m"}))
	assert.NotEqual(t, eventName(csr, a), eventName(csr, b))
	successor := csr.DeepCopy()
	successor.UID = "another"
	assert.NotEqual(t, eventName(csr, a), eventName(successor, a))
	long := strings.Repeat("x", 199)
	for _, name := range []string{"a", long + long[:54], long + "-y", strings.Repeat("x.", 126)} {
		csr.Name = name
		assert.Empty(t, validation.IsDNS1123Subdomain(eventName(csr, a)), eventName(csr, a))
	}
}

func TestOnlyAcceptanceWakesTheRequestsOfACluster(t *testing.T) {
	update := acceptanceChanged().Update
	before, after := accepted(), accepted()
	after.Labels = map[string]string{"a": "b"}
	assert.False(t, update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	after.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionTrue}}
	assert.True(t, update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	before = accepted()
	before.Spec.HubAcceptsClient = false
	assert.True(t, update(event.UpdateEvent{ObjectOld: before, ObjectNew: accepted()}))
	assert.True(t, acceptanceChanged().Create(event.CreateEvent{Object: before}))
	assert.False(t, acceptanceChanged().Delete(event.DeleteEvent{Object: before}))
}

func TestSelector(t *testing.T) {
	assert.True(t, Selector().Matches(labels.Set{names.LabelClusterName: "c1"}))
	assert.False(t, Selector().Matches(labels.Set{names.LabelAddonName: "hello"}))
	assert.Equal(t, names.LabelClusterName, Selector().String())
	own := Selector("hello", "world")
	assert.True(t, own.Matches(labels.Set{names.LabelClusterName: "c1", names.LabelAddonName: "world"}))
	assert.False(t, own.Matches(labels.Set{names.LabelClusterName: "c1", names.LabelAddonName: "other"}))
	assert.False(t, own.Matches(labels.Set{names.LabelClusterName: "c1"}), "requests of clusters are for the hub manager")
}

// Shows: registration/signing-judged
func TestTheAuthorFindsOnTheAddOnWhatIsNotSigned(t *testing.T) {
	unsigned := addonsFacts(withCondition(addonRequest(t, custom(), csrs.ClusterUser("c1", "a")), certificatesv1.CertificateApproved))
	problem := &note{true, reasonCAInvalid, "the CA expired"}
	require.Equal(t, stageUnsigned, unsigned.stage)
	event := addOnEvent(unsigned, problem)
	require.NotNil(t, event)
	assert.Equal(t, "c1", event.Namespace)
	assert.Equal(t, "ManagedClusterAddOn", event.InvolvedObject.Kind)
	assert.Equal(t, "hello", event.InvolvedObject.Name)
	assert.Equal(t, reasonCAInvalid, event.Reason)
	assert.Equal(t, "the CA expired", event.Message)

	another := unsigned
	another.csr = unsigned.csr.DeepCopy()
	another.csr.Name, another.csr.UID = "another", "another"
	assert.Equal(t, event.Name, addOnEvent(another, problem).Name, "one for all its requests")
	assert.NotEqual(t, event.Name, addOnEvent(unsigned, &note{true, reasonCAMissing, "x"}).Name)

	open := addonsFacts(addonRequest(t, custom(), csrs.ClusterUser("c1", "a")))
	assert.Nil(t, addOnEvent(open, problem), "a request that is not approved may be anybody's")
	unsigned.addon = nil
	assert.Nil(t, addOnEvent(unsigned, problem))
}

// Shows: registration/template-registrations
func TestAnAgentRenewsItsCredentialWhileItsHookRuns(t *testing.T) {
	for sentence, r := range map[string]addonv1beta1.RegistrationConfig{"of the hub": kube(), "of a custom signer": custom()} {
		t.Run(sentence, func(t *testing.T) {
			f := addonsFacts(addonRequest(t, r, csrs.ClusterUser("c1", "a")))
			f.addon.addon.DeletionTimestamp = &metav1.Time{Time: now}
			f.addon.addon.Finalizers = []string{addonv1beta1.AddonPreDeleteHookFinalizer}
			assert.Equal(t, stepApprove, decide(f).step)
		})
	}
}

// Shows: security/identity-awaited
func TestTwoProgramsAgreeOnACredentialOfAnAddOn(t *testing.T) {
	agent := csrs.ClusterUser("c1", "agent")
	ofProgram := func(r addonv1beta1.RegistrationConfig, created time.Duration, confirmed *approve.Decision) facts {
		f := addonsFacts(addonRequest(t, r, agent))
		f.identity, f.csr.CreationTimestamp = IdentityAwaited, metav1.NewTime(now.Add(-created))
		if confirmed != nil {
			approve.Verdict{Decision: *confirmed, Message: "said so"}.Vouch(f.csr, now)
		}
		return f
	}
	yes, no := approve.DecisionApprove, approve.DecisionRefuse
	t.Run("the program waits for the hub manager, and says so after a while", func(t *testing.T) {
		early, late := decide(ofProgram(kube(), time.Second, nil)), decide(ofProgram(kube(), time.Minute, nil))
		assert.Equal(t, plan{outcome: reconcile.Waiting(now.Add(29 * time.Second))}, early)
		assert.Equal(t, stepNone, late.step)
		assert.Contains(t, late.note.message, "--trust-as-ocm")
	})
	t.Run("it approves what the hub manager confirmed, and nothing else", func(t *testing.T) {
		assert.Equal(t, stepApprove, decide(ofProgram(kube(), time.Second, &yes)).step)
		refused := decide(ofProgram(kube(), time.Second, &no))
		assert.Equal(t, stepNone, refused.step)
		assert.Contains(t, refused.note.message, "said so")
	})
	t.Run("it asks nobody about signers of its own", func(t *testing.T) {
		assert.Equal(t, stepApprove, decide(ofProgram(custom(), time.Second, nil)).step)
	})
	ofHub := func(r addonv1beta1.RegistrationConfig, change func(*facts)) plan {
		f := addonsFacts(addonRequest(t, r, agent))
		f.identity, f.addon.ours, f.addon.registrations = IdentityConfirmed, false, nil
		change(&f)
		return decide(f)
	}
	for sentence, tc := range map[string]struct {
		r      addonv1beta1.RegistrationConfig
		change func(*facts)
		step   step
	}{
		"the hub manager confirms a good request once": {kube(), func(*facts) {}, stepVouch},
		"and says so of a bad one": {
			kube(), func(f *facts) { f.csr.Spec.Username = csrs.ClusterUser("c2", "agent") }, stepVouch,
		},
		"but not again":                      {kube(), func(f *facts) { approve.Verdict{}.Vouch(f.csr, now) }, stepNone},
		"nor of a signer of its own":         {custom(), func(*facts) {}, stepNone},
		"nor before the cluster is accepted": {kube(), func(f *facts) { f.addon.cluster.Spec.HubAcceptsClient = false }, stepNone},
		"nor without the add-on":             {kube(), func(f *facts) { f.addon.addon = nil }, stepNone},
		"nor as a program":                   {kube(), func(f *facts) { f.identity = IdentityAwaited }, stepNone},
		"and removes one that is open for too long": {kube(), func(f *facts) {
			approve.Verdict{}.Vouch(f.csr, now)
			f.csr.CreationTimestamp = metav1.NewTime(now.Add(-25 * time.Hour))
		}, stepExpire},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.step, ofHub(tc.r, tc.change).step) })
	}
}

// Shows: security/certificate-lifetime
func TestARequestForALongerCertificateThanTheHubAllowsIsNotApproved(t *testing.T) {
	for sentence, tc := range map[string]struct {
		limit   time.Duration
		seconds *int32
		of      addonv1beta1.RegistrationConfig
		want    step
	}{
		"without a limit the signer decides":                    {0, nil, kube(), stepApprove},
		"without a limit a year is approved":                    {0, ptr.To[int32](31536000), kube(), stepApprove},
		"a request for the limit is approved":                   {time.Hour, ptr.To[int32](3600), kube(), stepApprove},
		"a request for more is not":                             {time.Hour, ptr.To[int32](3601), kube(), stepNone},
		"nor one that leaves it to the signer":                  {time.Hour, nil, kube(), stepNone},
		"what the hub manager signs itself it limits by itself": {time.Hour, nil, custom(), stepApprove},
	} {
		t.Run(sentence, func(t *testing.T) {
			request := addonRequest(t, tc.of, csrs.ClusterUser("c1", "a"))
			request.Spec.ExpirationSeconds = tc.seconds
			f := addonsFacts(request)
			f.maxLifetime = tc.limit
			p := decide(f)
			assert.Equal(t, tc.want, p.step)
			if tc.want == stepNone {
				require.NotNil(t, p.note)
				assert.Equal(t, approve.ReasonLifetimeTooLong, p.note.reason)
				assert.Contains(t, p.note.message, "at most 3600 seconds")
			}
		})
	}
}
