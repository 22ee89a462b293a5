package health_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
)

// fed is a report of a cluster about an object.
type fed struct {
	resource, name string
	values         map[string]int64
	strings        map[string]string
}

// work returns a work that is available, with objects of group apps in namespace ns and what the cluster reports.
func work(objects []health.Object, reports ...fed) health.Work {
	return conditioned(metav1.ConditionTrue, "", objects, reports...)
}

func conditioned(status metav1.ConditionStatus, message string, objects []health.Object, reports ...fed) health.Work {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	if status != "" {
		w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkAvailable, Status: status, Message: message}}
	}
	for _, r := range reports {
		m := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{
			Group: "apps", Resource: r.resource, Namespace: "ns", Name: r.name,
		}}
		for name, value := range r.values {
			m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
				Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value},
			})
		}
		for name, value := range r.strings {
			m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{
				Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &value},
			})
		}
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, m)
	}
	return health.Work{ManifestWork: w, Objects: objects}
}

func object(kind, name string) health.Object {
	return health.Object{Group: "apps", Kind: kind, Namespace: "ns", Name: name, Replicas: -1}
}

type values = map[string]int64

// readyIsOne is the check of an author: every object needs one ready pod.
func readyIsOne(r addon.ProbeRequest) error {
	for _, result := range r.Results {
		if ready, known := result.Integer("Ready"); !known || ready < 1 {
			return fmt.Errorf("%s/%s of %s on %s is not ready", result.Namespace, result.Name, r.AddOn.Name, r.Cluster.Name)
		}
	}
	return nil
}

func field(resource, namespace, name string) addon.ProbeField {
	return addon.ProbeField{ResourceIdentifier: workv1.ResourceIdentifier{
		Group: "apps", Resource: resource, Namespace: namespace, Name: name,
	}}
}

// Shows: hub/health-probes
func TestJudge(t *testing.T) {
	one, pair := []health.Object{object("Deployment", "d")}, []health.Object{object("Deployment", "d"), object("DaemonSet", "s")}
	good := fed{resource: "deployments", name: "d", values: values{"Ready": 1, "ReadyReplicas": 1, "Replicas": 1}}
	custom := func(check func(addon.ProbeRequest) error, fields ...addon.ProbeField) addon.Setup {
		return addon.Setup{Health: addon.HealthWork, WorkProbe: &addon.WorkProbe{Fields: fields, Check: check}}
	}
	of := func(probe addon.HealthProbe) addon.Setup { return addon.Setup{Health: probe} }
	d, all := field("deployments", "ns", "d"), field("deployments", "n*", "*")
	for sentence, tc := range map[string]struct {
		setup  addon.Setup
		works  []health.Work
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"no work": {of(addon.HealthWork), nil, "Unknown", "WorkNotFound", "no ManifestWork"},
		"a work that is not applied yet": {
			of(addon.HealthWork), []health.Work{conditioned("", "", nil)}, "Unknown", "WorkNotApplied", "w is not applied yet",
		},
		"a work that is not available": {
			custom(nil, d), []health.Work{work(one, good), conditioned("False", "gone", nil)}, "False", "WorkNotApplied", "w: gone",
		},
		"a work of which the cluster knows nothing is let through": {
			of(addon.HealthWork), []health.Work{conditioned("Unknown", "", nil)}, "True", "WorkApplied", "",
		},
		"works without a probe need to be available only": {
			of(addon.HealthWork), []health.Work{work(one)}, "True", "WorkApplied", "All ManifestWorks",
		},
		"an empty probe is none": {custom(nil), []health.Work{work(one)}, "True", "WorkApplied", ""},
		"no result": {
			custom(readyIsOne, d), []health.Work{work(one)}, "Unknown", "NoProbeResult", "deployments.apps ns/d",
		},
		"a result without values is none": {
			custom(readyIsOne, d), []health.Work{work(one, fed{resource: "deployments", name: "d"})}, "Unknown", "NoProbeResult", "",
		},
		"a result about another object is none": {
			custom(readyIsOne, field("deployments", "ns", "other")), []health.Work{work(one, good)}, "Unknown", "NoProbeResult", "",
		},
		"a result about another resource is none": {
			custom(readyIsOne, field("daemonsets", "ns", "d")), []health.Work{work(one, good)}, "Unknown", "NoProbeResult", "",
		},
		"a check that passes":   {custom(readyIsOne, d), []health.Work{work(one, good)}, "True", "ProbeAvailable", ""},
		"any result, no check":  {custom(nil, d), []health.Work{work(one, good)}, "True", "ProbeAvailable", ""},
		"a check without field": {custom(func(addon.ProbeRequest) error { return errors.New("never") }), []health.Work{work(one)}, "False", "ProbeUnavailable", "Not available: never."},
		"a check that fails": {
			custom(readyIsOne, d), []health.Work{work(one, fed{resource: "deployments", name: "d", values: values{"Ready": 0}})},
			"False", "ProbeUnavailable", "Not available: ns/d of a on c1 is not ready.",
		},
		"a check gets what all fields select in all works": {
			custom(func(r addon.ProbeRequest) error {
				if len(r.Results) != 3 {
					return fmt.Errorf("%d results", len(r.Results))
				}
				return nil
			}, all, field("daemonsets", "ns", "s")),
			[]health.Work{work(one, good, fed{resource: "daemonsets", name: "s", values: values{"Ready": 1}}), work(one, fed{resource: "deployments", name: "e", values: values{"Ready": 1}})},
			"True", "ProbeAvailable", "",
		},
		"a wildcard selects by namespace and name": {
			custom(readyIsOne, all), []health.Work{work(one, good, fed{resource: "deployments", name: "e", values: values{"Ready": 0}})},
			"False", "ProbeUnavailable", "ns/e",
		},
		"a wildcard that selects nothing": {
			custom(readyIsOne, field("deployments", "*", "x*")), []health.Work{work(one, good)}, "Unknown", "NoProbeResult", "*/x*",
		},
		"the first field has no result, the second has": {
			custom(readyIsOne, field("deployments", "ns", "x"), d), []health.Work{work(one, good)}, "True", "ProbeAvailable", "",
		},
		"a check reads text, too": {
			custom(func(r addon.ProbeRequest) error {
				if phase, known := r.Results[0].Text("Phase"); !known || phase != "Bound" {
					return errors.New("phase " + phase)
				}
				return nil
			}, d),
			[]health.Work{work(one, fed{resource: "deployments", name: "d", strings: map[string]string{"Phase": "Lost"}})},
			"False", "ProbeUnavailable", "phase Lost",
		},

		"Deployments: not applied": {
			of(addon.HealthDeployments), []health.Work{conditioned("", "", one)}, "Unknown", "WorkNotApplied", "",
		},
		"Deployments: no work":                      {of(addon.HealthDeployments), nil, "Unknown", "WorkNotFound", ""},
		"Deployments: no result":                    {of(addon.HealthDeployments), []health.Work{work(one)}, "Unknown", "NoProbeResult", "Deployment ns/d"},
		"Deployments: pass":                         {of(addon.HealthDeployments), []health.Work{work(one, good)}, "True", "ProbeAvailable", "All Deployments of"},
		"Deployments: no ready":                     {of(addon.HealthDeployments), []health.Work{work(one, fed{resource: "deployments", name: "d", values: values{"Replicas": 2}})}, "False", "ProbeUnavailable", "Deployment ns/d has 0 ready of 2 pods"},
		"Deployments: DaemonSets are not looked at": {of(addon.HealthDeployments), []health.Work{work(pair, good)}, "True", "ProbeAvailable", ""},
		"Deployments: none among the objects": {
			of(addon.HealthDeployments), []health.Work{work([]health.Object{object("DaemonSet", "s")})}, "True", "ProbeAvailable", "",
		},
		"Workloads: not applied":  {of(addon.HealthWorkloads), []health.Work{conditioned("", "", pair)}, "Unknown", "WorkNotApplied", ""},
		"Workloads: no work":      {of(addon.HealthWorkloads), nil, "Unknown", "WorkNotFound", ""},
		"Workloads: unavailable":  {of(addon.HealthWorkloads), []health.Work{conditioned("False", "m", pair)}, "False", "WorkNotApplied", "m"},
		"Workloads: no result":    {of(addon.HealthWorkloads), []health.Work{work(pair)}, "Unknown", "NoProbeResult", "Deployment ns/d, DaemonSet ns/s"},
		"Workloads: some results": {of(addon.HealthWorkloads), []health.Work{work(pair, good)}, "Unknown", "NoProbeResult", "DaemonSet ns/s"},
		"Workloads: pass": {
			of(addon.HealthWorkloads),
			[]health.Work{work(pair, good, fed{resource: "daemonsets", name: "s", values: values{"NumberReady": 3, "DesiredNumberScheduled": 3}})},
			"True", "ProbeAvailable", "All Deployments, DaemonSets and StatefulSets",
		},
		"Workloads: a template without workloads": {of(addon.HealthWorkloads), []health.Work{work(nil)}, "True", "ProbeAvailable", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := health.Judge(health.Subject{
				Setup: tc.setup, Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
				AddOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a"}},
			}, tc.works)
			assert.Equal(t, "Available", got.Type)
			assert.Equal(t, tc.status, got.Status)
			assert.Equal(t, tc.reason, got.Reason)
			assert.Contains(t, got.Message, tc.says)
			assert.NotEmpty(t, got.Message)
		})
	}
}

// Shows: hub/health-probes
func TestWhenAWorkloadIsWell(t *testing.T) {
	off := func(kind string) health.Object {
		o := object(kind, "x")
		o.Replicas = 0
		return o
	}
	const deployment, daemons, stateful = "deployments", "daemonsets", "statefulsets"
	for sentence, tc := range map[string]struct {
		object   health.Object
		resource string
		values   values
		reason   string
		says     string
	}{
		"a Deployment with one ready pod":                     {object("Deployment", "x"), deployment, values{"ReadyReplicas": 1, "Replicas": 1}, "ProbeAvailable", ""},
		"a Deployment with some ready pods":                   {object("Deployment", "x"), deployment, values{"ReadyReplicas": 1, "Replicas": 3}, "ProbeAvailable", ""},
		"a Deployment of which only the ready pods are known": {object("Deployment", "x"), deployment, values{"ReadyReplicas": 2}, "ProbeAvailable", ""},
		"a Deployment without a ready pod":                    {object("Deployment", "x"), deployment, values{"ReadyReplicas": 0, "Replicas": 3}, "ProbeUnavailable", "has 0 ready of 3 pods"},
		"a Deployment whose ready pods are not known":         {object("Deployment", "x"), deployment, values{"Replicas": 3}, "ProbeUnavailable", "has 0 ready of 3 pods"},
		"a Deployment of which nothing useful is known":       {object("Deployment", "x"), deployment, values{"AvailableReplicas": 0}, "ProbeUnavailable", "has 0 ready of unknown pods"},
		"a Deployment whose pods a quota refuses":             {object("Deployment", "x"), deployment, values{"SpecReplicas": 2}, "ProbeUnavailable", "has 0 ready of 2 pods"},
		"a Deployment of which an autoscaler wants no pods":   {object("Deployment", "x"), deployment, values{"SpecReplicas": 0}, "ProbeAvailable", ""},
		"a Deployment that was scaled down on its cluster":    {object("Deployment", "x"), deployment, values{"Replicas": 0}, "ProbeAvailable", ""},
		"a Deployment that was scaled down and counts zero":   {object("Deployment", "x"), deployment, values{"ReadyReplicas": 0, "Replicas": 0}, "ProbeAvailable", ""},
		"a Deployment that its author switched off":           {off("Deployment"), deployment, nil, "ProbeAvailable", ""},
		"a Deployment of which nothing is known":              {object("Deployment", "x"), deployment, nil, "NoProbeResult", "Deployment ns/x"},
		"a DaemonSet that is complete":                        {object("DaemonSet", "x"), daemons, values{"NumberReady": 2, "DesiredNumberScheduled": 2}, "ProbeAvailable", ""},
		"a DaemonSet without nodes":                           {object("DaemonSet", "x"), daemons, values{"NumberReady": 0, "DesiredNumberScheduled": 0}, "ProbeAvailable", ""},
		"a DaemonSet without nodes, which counts nothing":     {object("DaemonSet", "x"), daemons, values{"DesiredNumberScheduled": 0}, "ProbeAvailable", ""},
		"a DaemonSet that is not complete":                    {object("DaemonSet", "x"), daemons, values{"NumberReady": 1, "DesiredNumberScheduled": 2}, "ProbeUnavailable", "DaemonSet ns/x has 1 ready of 2 pods"},
		"a DaemonSet whose nodes are not known":               {object("DaemonSet", "x"), daemons, values{"NumberReady": 1}, "ProbeUnavailable", "1 ready of unknown"},
		"a StatefulSet with one ready pod":                    {object("StatefulSet", "x"), stateful, values{"ReadyReplicas": 1, "Replicas": 3}, "ProbeAvailable", ""},
		"a StatefulSet without a ready pod":                   {object("StatefulSet", "x"), stateful, values{"Replicas": 3}, "ProbeUnavailable", "StatefulSet ns/x has 0 ready of 3 pods"},
		"a StatefulSet that its author switched off":          {off("StatefulSet"), stateful, nil, "ProbeAvailable", ""},
		"a StatefulSet of which nothing is known":             {object("StatefulSet", "x"), stateful, nil, "NoProbeResult", ""},
		"a kind of the same name in another group":            {health.Object{Group: "example.com", Kind: "Deployment", Name: "x", Replicas: -1}, deployment, nil, "ProbeAvailable", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := work([]health.Object{tc.object}, fed{resource: tc.resource, name: "x", values: tc.values})
			got := health.Judge(health.Subject{Setup: addon.Setup{Health: addon.HealthWorkloads}}, []health.Work{w})
			assert.Equal(t, tc.reason, got.Reason)
			assert.Contains(t, got.Message, tc.says)
		})
	}
}

func TestAValueWithoutANumberIsNotLookedInto(t *testing.T) {
	w := work([]health.Object{object("Deployment", "d")}, fed{resource: "deployments", name: "d", values: values{"Replicas": 1}})
	feedback := &w.Status.ResourceStatus.Manifests[0].StatusFeedbacks
	feedback.Values = append(feedback.Values, workv1.FeedbackValue{
		Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer},
	}, workv1.FeedbackValue{Name: "Text", Value: workv1.FieldValue{Type: workv1.String}})
	got := health.Judge(health.Subject{Setup: addon.Setup{Health: addon.HealthWorkloads}}, []health.Work{w})
	assert.Equal(t, "ProbeUnavailable", got.Reason)
	_, known := addon.ProbeResult{Values: feedback.Values}.Text("Text")
	assert.False(t, known)
}
