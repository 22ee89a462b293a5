package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: security/unaccepted-clusters-end
func TestAClusterThatWasNeverAcceptedIsRemovedAfterADay(t *testing.T) {
	born := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	request := func(conditions ...certificatesv1.RequestConditionType) func(*facts) {
		r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
			Name: "r", Labels: map[string]string{names.LabelClusterName: "c1"},
		}}
		for _, c := range conditions {
			r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: c, Status: corev1.ConditionTrue,
			})
		}
		return func(f *facts) { f.requests = append(f.requests, r) }
	}
	marked := func(key string) func(*facts) {
		return func(f *facts) { f.cluster.Annotations = map[string]string{key: "x"} }
	}
	set := func(set string) func(*facts) {
		return func(f *facts) { f.cluster.Labels["cluster.open-cluster-management.io/clusterset"] = set }
	}
	tests := map[string]struct {
		age    time.Duration
		change func(*facts)
		// removed and kept are what becomes of it; wake is when it is looked at again, by its age.
		removed, kept bool
		wake          time.Duration
	}{
		"one that nobody asks about is removed":  {age: 24 * time.Hour, removed: true},
		"not a second before":                    {age: 24*time.Hour - time.Second, wake: 24 * time.Hour},
		"one whose request waits stays":          {age: 48 * time.Hour, change: request(), wake: 49 * time.Hour},
		"one whose request was denied does not":  {age: 48 * time.Hour, change: request(certificatesv1.CertificateDenied), removed: true},
		"one whose request was approved is kept": {age: time.Hour, change: request(certificatesv1.CertificateApproved), kept: true},
		"the mark of that keeps it":              {age: 48 * time.Hour, change: marked(names.AnnotationKeepUnaccepted)},
		"one that was accepted before stays":     {age: 48 * time.Hour, change: marked(names.AnnotationAcceptedOn)},
		"one that only says that it was accepted without a person is removed: its creator may write that": {
			age: 48 * time.Hour, change: marked(names.AnnotationAutoAcceptedOn), removed: true,
		},
		"one in a set that somebody chose stays": {age: 48 * time.Hour, change: set("team-a")},
		"one with a namespace stays": {age: 48 * time.Hour, change: func(f *facts) {
			f.namespace = reconcile.Namespace()
		}},
		"one that has joined stays": {age: 48 * time.Hour, change: func(f *facts) {
			f.cluster.Status.Conditions = []metav1.Condition{{
				Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue,
			}}
		}},
		"one that is accepted now stays": {age: 48 * time.Hour, change: func(f *facts) {
			f.cluster.Spec.HubAcceptsClient = true
		}},
		"none is removed where that is switched off": {age: 48 * time.Hour, change: func(f *facts) { f.unacceptedLife = 0 }},
		"our own writes come first": {age: 48 * time.Hour, change: func(f *facts) {
			f.cluster.Finalizers = nil
		}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := facts{name: "c1", now: born.Add(tc.age), unacceptedLife: 24 * time.Hour, cluster: &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{
					Name: "c1", CreationTimestamp: metav1.NewTime(born), Finalizers: []string{names.FinalizerCluster},
					Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "default"},
				},
				Spec: clusterv1.ManagedClusterSpec{Taints: []clusterv1.Taint{{
					Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect,
					TimeAdded: metav1.NewTime(born),
				}}},
			}}
			if tc.change != nil {
				tc.change(&f)
			}
			p := decide(f)
			deletes := false
			for _, stage := range p.stages {
				for _, step := range stage {
					deletes = deletes || (step.Verb == reconcile.Delete && step.Before == f.cluster)
				}
			}
			assert.Equal(t, tc.removed, p.abandoned)
			assert.Equal(t, tc.removed, deletes)
			if tc.kept {
				require.NotNil(t, p.cluster)
				assert.NotEmpty(t, p.cluster.Annotations[names.AnnotationKeepUnaccepted])
			}
			if tc.wake > 0 {
				assert.Equal(t, born.Add(tc.wake), p.wake)
			}
		})
	}
}

// A hub of OCM accepted and then denied the first cluster, whose name Spokelet refuses; the policy
// hub-manager-clusters refuses the deletion of both, so that it would be tried for ever.
func TestAClusterThatWasAcceptedUnderAnUnusableNameStays(t *testing.T) {
	born := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]metav1.Condition{
		"registration": {Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionFalse},
		"my.cluster":   {Type: clusterv1.ManagedClusterConditionHubAccepted, Status: metav1.ConditionFalse},
		"c1":           {Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{name: name, now: born.Add(48 * time.Hour), unacceptedLife: 24 * time.Hour, cluster: &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{
					Name: name, CreationTimestamp: metav1.NewTime(born), Finalizers: []string{names.FinalizerCluster},
					Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "default"},
				},
				Spec: clusterv1.ManagedClusterSpec{Taints: []clusterv1.Taint{{
					Key: clusterv1.ManagedClusterTaintUnreachable, Effect: clusterv1.TaintEffectNoSelect,
					TimeAdded: metav1.NewTime(born),
				}}},
				Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{c}},
			}}
			assert.False(t, decide(f).abandoned)
		})
	}
}
