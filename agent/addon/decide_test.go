package addon

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func hubClient(driver, user string, groups ...string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
		Driver: driver, Subject: addonv1beta1.KubeClientSubject{
			BaseSubject: addonv1beta1.BaseSubject{User: user, Groups: groups},
		},
	}}
}

func customSigner(name string) addonv1beta1.RegistrationConfig {
	return addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{SignerName: name},
	}
}

func addonWith(registrations ...addonv1beta1.RegistrationConfig) facts {
	return facts{
		now: noon, name: "hello", cluster: "c1", grace: 5 * time.Minute, driver: DriverCSR,
		addon: &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"},
			Status: addonv1beta1.ManagedClusterAddOnStatus{
				Namespace: "ns", Registrations: registrations,
				HealthCheck: addonv1beta1.HealthCheck{Mode: addonv1beta1.HealthCheckModeCustomized},
			},
		},
	}
}

func secretsOf(p plan) []string {
	var all []string
	for _, reg := range p.serve {
		all = append(all, reg.secret.String())
	}
	return all
}

func TestPlaceOf(t *testing.T) {
	tests := map[string]struct {
		change func(f *facts)
		want   place
	}{
		"the hub's word counts": {
			func(f *facts) { f.addon.Annotations = map[string]string{names.AnnotationInstallNamespace: "other"} },
			place{side: sideAgent, namespace: "ns"},
		},
		"then the annotation": {
			func(f *facts) {
				f.addon.Status.Namespace = ""
				f.addon.Annotations = map[string]string{names.AnnotationInstallNamespace: "other"}
			},
			place{side: sideAgent, namespace: "other"},
		},
		"then the default": {
			func(f *facts) { f.addon.Status.Namespace = "" },
			place{side: sideAgent, namespace: "open-cluster-management-agent-addon"},
		},
		"an agent beside its cluster puts add-ons on the cluster": {
			func(f *facts) { f.split = true }, place{side: sideSpoke, namespace: "ns"},
		},
		"a hosted add-on runs beside the agent": {
			func(f *facts) {
				f.split = true
				f.addon.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
			},
			place{side: sideAgent, namespace: "ns", hosting: "host"},
		},
		"an empty annotation is no host": {
			func(f *facts) {
				f.split = true
				f.addon.Annotations = map[string]string{names.AnnotationHostingCluster: ""}
			},
			place{side: sideSpoke, namespace: "ns"},
		},
		"the klusterlet may serve the namespace on the hosting cluster": {
			func(f *facts) {
				f.split, f.hostedNamespaces = true, []string{"other", "ns"}
				f.addon.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
			},
			place{side: sideAgent, namespace: "ns", hosting: "host"},
		},
		"the klusterlet may not serve the namespace on the hosting cluster": {
			func(f *facts) {
				f.split, f.hostedNamespaces = true, []string{"own", "other"}
				f.addon.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
			},
			place{
				side: sideAgent, namespace: "ns", hosting: "host",
				problem: "namespace ns of the add-on agent is on the hosting cluster, where the klusterlet serves add-ons only " +
					"in own, other: name it in --hosted-addon-namespaces of the klusterlet, and give the klusterlet its rights in " +
					"the namespace",
			},
		},
		"the namespaces on the hosting cluster do not restrict the managed cluster": {
			func(f *facts) { f.split, f.hostedNamespaces = true, []string{"own"} },
			place{side: sideSpoke, namespace: "ns"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := addonWith()
			tc.change(&f)
			assert.Equal(t, tc.want, placeOf(f))
		})
	}
}

// Shows: registration/requests-planned
func TestAnAddonGetsNoSecretOfTheKlusterlet(t *testing.T) {
	f := addonWith(hubClient("csr", "u", "g"), customSigner("example.com/s"))
	f.name, f.reserved = "bootstrap", []string{"bootstrap-hub-kubeconfig"}
	p := decide(f)
	assert.Equal(t, []string{"ns/bootstrap-example.com-s-client-cert"}, secretsOf(p))
	require.Len(t, p.refused, 1)
	assert.Contains(t, p.refused[0].condition.Message, "registrations[0]: secret bootstrap-hub-kubeconfig is a credential of "+
		"the klusterlet: give the add-on another name")
}

func TestPlanRegistrations(t *testing.T) {
	const kube, custom = "ns/hello-hub-kubeconfig", "ns/hello-example.com-s-client-cert"
	tests := map[string]struct {
		registrations []addonv1beta1.RegistrationConfig
		serve         []string
		declare       bool
		waits         bool
		refused       string
	}{
		"no registration, nothing to do": {},
		"a declared registration is served": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("csr", "u", "g")}, serve: []string{kube},
		},
		"a complete subject is served with the declaration": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("", "u", "g")}, serve: []string{kube}, declare: true,
		},
		"an incomplete subject waits for what the hub makes of the declaration": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("", "")}, declare: true, waits: true,
		},
		"once declared, an empty subject means the default": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("csr", "")}, serve: []string{kube},
		},
		"a registration without kubeClient is declared": {
			registrations: []addonv1beta1.RegistrationConfig{{Type: addonv1beta1.KubeClient}}, declare: true, waits: true,
		},
		"another driver is replaced and its subject not asked for": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("token", "system:serviceaccount:c1:hello-agent")},
			declare:       true, waits: true,
		},
		"the subject of another driver is not asked for after the declaration either": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("csr", "system:serviceaccount:c1:hello-agent")},
			waits:         true,
		},
		"a custom signer needs no declaration": {
			registrations: []addonv1beta1.RegistrationConfig{customSigner("example.com/s")}, serve: []string{custom},
		},
		"both kinds side by side": {
			registrations: []addonv1beta1.RegistrationConfig{customSigner("example.com/s"), hubClient("csr", "u", "g")},
			serve:         []string{custom, kube},
		},
		"the same twice is served once": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("csr", "u", "g"), hubClient("csr", "u", "g")},
			serve:         []string{kube},
		},
		"two for one Secret are told": {
			registrations: []addonv1beta1.RegistrationConfig{hubClient("csr", "u", "g"), hubClient("csr", "other", "g")},
			serve:         []string{kube},
			refused: "Failed to rotated client certificate registrations[1]: another registration before it has the same " +
				"secret hello-hub-kubeconfig and another subject: only that is served",
		},
		"a signer whose name cannot be in that of a Secret is told": {
			registrations: []addonv1beta1.RegistrationConfig{customSigner("example.com/s."), hubClient("csr", "u", "g")},
			serve:         []string{kube},
			refused: "registrations[0]: signer example.com/s. makes the Secret name \"hello-example.com-s.-client-cert\", " +
				"which Kubernetes does not allow: ",
		},
		"a broken one does not stop its sibling": {
			registrations: []addonv1beta1.RegistrationConfig{customSigner(""), hubClient("csr", "u", "g")},
			serve:         []string{kube},
			refused:       "registrations[0]: a registration of type customSigner needs customSigner.signerName",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := decide(addonWith(tc.registrations...))
			assert.Equal(t, tc.serve, secretsOf(p))
			assert.Equal(t, tc.declare, p.declare == DriverCSR)
			assert.Equal(t, tc.waits, p.waits)
			if tc.refused == "" {
				assert.Empty(t, p.refused)
				return
			}
			require.Len(t, p.refused, 1)
			assert.Contains(t, p.refused[0].condition.Message, tc.refused)
		})
	}
}

func TestPlanRemoval(t *testing.T) {
	applied := metav1.Condition{Type: "RegistrationApplied", Status: metav1.ConditionTrue}
	now := metav1.NewTime(noon)
	tests := map[string]struct {
		change func(f *facts)
		want   removal
	}{
		"an add-on that is gone loses all":              {func(f *facts) { f.addon = nil }, removeAll},
		"an add-on with registrations loses the others": {func(*facts) {}, removeStale},
		"an add-on that is being deleted loses none": {
			func(f *facts) { f.addon.DeletionTimestamp = &now }, removeNone,
		},
		"nor does it when its registrations went away": {
			func(f *facts) {
				f.addon.DeletionTimestamp, f.addon.Status.Registrations = &now, nil
				f.addon.Status.Conditions = []metav1.Condition{applied}
			}, removeNone,
		},
		"an empty list that the hub means counts": {
			func(f *facts) {
				f.addon.Status.Registrations = nil
				f.addon.Status.Conditions = []metav1.Condition{applied}
			}, removeAll,
		},
		"an empty list that the hub does not speak of does not": {
			func(f *facts) { f.addon.Status.Registrations = nil }, removeNone,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := addonWith(hubClient("csr", "u", "g"))
			tc.change(&f)
			assert.Equal(t, tc.want, decide(f).remove)
		})
	}
}

func TestGoes(t *testing.T) {
	p := decide(addonWith(hubClient("csr", "u", "g")))
	wanted := p.serve[0]
	pending := issue.PendingName(wanted.request, "")
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	live := ownedSecret{side: sideAgent, key: wanted.secret}
	stale := ownedSecret{side: sideAgent, key: key("old", "hello-hub-kubeconfig")}
	served := []result{{served: true}}
	tests := map[string]struct {
		secret  ownedSecret
		change  func(p *plan)
		results []result
		want    bool
	}{
		"what is wanted stays":                       {secret: live, results: served},
		"its pending key stays":                      {secret: ownedSecret{sideAgent, key("agent", pending), "", true, false}, results: served},
		"what is not wanted goes":                    {secret: stale, results: served, want: true},
		"the same on the other cluster goes":         {secret: ownedSecret{side: sideSpoke, key: wanted.secret}, results: served, want: true},
		"the pending key of another signer goes":     {secret: ownedSecret{sideAgent, key("agent", "x-pending"), "", true, false}, results: served, want: true},
		"nothing goes before its successor is there": {secret: stale, results: []result{{served: false}}},
		"nothing goes while one of several is not there": {
			secret: stale, results: []result{{served: true}, {served: false}},
		},
		"nothing goes while the hub must move first": {
			secret: stale, results: served, change: func(p *plan) { p.waits = true },
		},
		"nothing goes while a registration is broken": {
			secret: stale, results: served, change: func(p *plan) { p.refused = []result{{}} },
		},
		"all goes when all is to go":      {secret: live, change: func(p *plan) { p.remove = removeAll }, want: true},
		"none goes when none is to go":    {secret: stale, results: served, change: func(p *plan) { p.remove = removeNone }},
		"an unfinished plan removes none": {secret: live, change: func(p *plan) { p.remove = "" }, results: []result{{}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := p
			if tc.change != nil {
				tc.change(&q)
			}
			assert.Equal(t, tc.want, obsolete(tc.secret, types.NamespacedName{Namespace: "agent", Name: names.SecretHub}, q, tc.results))
		})
	}
}

// Shows: registration/health-decided
func TestPlanHealth(t *testing.T) {
	lease := func(at time.Time) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(at)
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello"},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
		}
	}
	tests := map[string]struct {
		change  func(f *facts)
		status  metav1.ConditionStatus // empty: left alone
		reason  string
		message string
		wake    time.Time
	}{
		"a fresh lease": {
			func(f *facts) { f.lease.object = lease(noon.Add(-time.Minute)) },
			metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "hello add-on is available.", noon.Add(4 * time.Minute),
		},
		"a stale lease": {
			func(f *facts) { f.lease.object = lease(noon.Add(-5 * time.Minute)) },
			metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped",
			"hello add-on is not available. Its lease ns/hello was last renewed at 2026-11-20T11:55:00Z, " +
				"more than 5m0s ago.", time.Time{},
		},
		"a lease that nobody renewed": {
			func(f *facts) {
				f.lease.object = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hello"}}
			},
			metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped",
			"hello add-on is not available. Its lease ns/hello has no renewTime: it exists but was never renewed.", time.Time{},
		},
		"no lease": {
			func(*facts) {},
			metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound",
			"The status of hello add-on is unknown. There is no lease ns/hello: no agent of the add-on has renewed it yet.",
			time.Time{},
		},
		"no lease of a hosted add-on": {
			func(f *facts) { f.addon.Annotations = map[string]string{names.AnnotationHostingCluster: "host"} },
			metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound",
			`The status of hello add-on is unknown. No lease found on hosting cluster "host"; ` +
				`verify it matches the cluster where this managed cluster's klusterlet actually runs. ` +
				`There is no lease ns/hello.`, time.Time{},
		},
		"no lease of an add-on that is new": {
			func(f *facts) { f.addon.CreationTimestamp = metav1.NewTime(noon.Add(-time.Second)) },
			"", "", "", noon.Add(9 * time.Second),
		},
		"no lease of a new add-on that is to have one": {
			func(f *facts) {
				f.addon.CreationTimestamp = metav1.NewTime(noon.Add(-time.Second))
				f.addon.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeLease
			},
			metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound",
			"The status of hello add-on is unknown. There is no lease ns/hello: no agent of the add-on has renewed it yet.",
			time.Time{},
		},
		"no lease of an add-on whose hub said nothing in time": {
			func(f *facts) { f.addon.CreationTimestamp = metav1.NewTime(noon.Add(-10 * time.Second)) },
			metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound",
			"The status of hello add-on is unknown. There is no lease ns/hello: no agent of the add-on has renewed it yet.",
			time.Time{},
		},
		"no lease of an add-on that will be created by the clock of the hub": {
			func(f *facts) { f.addon.CreationTimestamp = metav1.NewTime(noon.Add(time.Hour)) },
			metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound",
			"The status of hello add-on is unknown. There is no lease ns/hello: no agent of the add-on has renewed it yet.",
			time.Time{},
		},
		"a fresh lease of an add-on that is new": {
			func(f *facts) {
				f.addon.CreationTimestamp, f.lease.object = metav1.NewTime(noon), lease(noon.Add(-time.Minute))
			},
			metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "hello add-on is available.", noon.Add(4 * time.Minute),
		},
		"a lease that is not seen": {
			func(f *facts) { f.lease = observation{cause: errors.New("forbidden")} }, "", "", "", time.Time{},
		},
		"a lease that may not be watched": {
			func(f *facts) { f.lease = observation{refused: errors.New("leases is forbidden")} },
			metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound",
			"The status of hello add-on is unknown. The klusterlet may not watch its lease ns/hello, give it the right to do " +
				"so: leases is forbidden.", time.Time{},
		},
		"a lease that may not be watched, of a cluster that the hub lost sight of": {
			func(f *facts) { f.lease, f.clusterUnknown = observation{refused: errors.New("forbidden")}, true },
			"", "", "", time.Time{},
		},
		"a cluster that the hub lost sight of": {
			func(f *facts) { f.lease.object, f.clusterUnknown = lease(noon), true }, "", "", "", noon.Add(5 * time.Minute),
		},
		"an add-on that looks after its health itself": {
			func(f *facts) { f.addon.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized },
			"", "", "", time.Time{},
		},
		"an add-on that is being deleted": {
			func(f *facts) {
				now := metav1.NewTime(noon)
				f.addon.DeletionTimestamp, f.lease.object = &now, lease(noon)
			},
			metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "hello add-on is available.", noon.Add(5 * time.Minute),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := addonWith()
			f.addon.Status.HealthCheck.Mode = ""
			f.lease = observation{known: true}
			tc.change(&f)
			p := decide(f)
			assert.True(t, tc.wake.Equal(p.wake), "wakes at %s", p.wake)
			if tc.status == "" {
				assert.Nil(t, p.available)
				return
			}
			assert.Equal(t, []target{{side: sideAgent, kind: kindLease, namespace: "ns", name: "hello"}}, p.watch)
			assert.Equal(t, &metav1.Condition{
				Type: "Available", Status: tc.status, Reason: tc.reason, Message: tc.message,
			}, p.available)
		})
	}
}
