package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/policies"
)
// completes is the add-on of a cluster that completed a content an hour ago.
func completes(config addonv1beta1.AddOnConfig, cluster, hash string) *addonv1beta1.ManagedClusterAddOn {
	return fixture.With(fixture.AddOn(cluster, fixture.Has(config, hash)),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Hour)))
}
// fails is the add-on of a cluster whose agent lets a content fail.
func fails(config addonv1beta1.AddOnConfig, cluster, hash string) *addonv1beta1.ManagedClusterAddOn {
	since := fixture.Noon().Add(-time.Minute)
	c := failedAt("Failed", config, since)
	c.Message = "it failed; the rollout gave " + addonconfig.ContentsOf([]addonv1beta1.ConfigReference{fixture.Desires(config, hash)}).String()
	return fixture.With(fixture.AddOn(cluster, fixture.Desires(config, hash)),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Failed", since), c)
}
// cameBack is the same after it returned to what it had before.
func cameBack(config addonv1beta1.AddOnConfig, cluster, hash, old string) *addonv1beta1.ManagedClusterAddOn {
	c := failedAt("Undone", config, fixture.Noon().Add(-time.Minute))
	c.Message = "it failed; the rollout gave " + addonconfig.ContentsOf([]addonv1beta1.ConfigReference{fixture.Desires(config, hash)}).String()
	return fixture.With(fixture.AddOn(cluster, fixture.Has(config, old)),
		fixture.Condition("Progressing", metav1.ConditionFalse, "Completed", fixture.Noon().Add(-time.Minute)), c)
}
// A content completed on all clusters weeks ago. A cluster joins, or the tenant of one deletes its add-on, which is
// created again, and its agent lets it fail. The policy asks for UndoAll.
//
// Shows: policies/undo-newcomer
func TestNoNewcomerTakesWhatCompletedFromTheOthers(t *testing.T) {
	cfg := fixture.Template("t")
	spec := policies.AddOnPolicySpec{OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll, After: metav1.Duration{Duration: time.Second}}}
	f, policy := underPolicy(cfg, spec, completes(cfg, "b", "new"), fails(cfg, "a", "new"))
	policy.Status.Placements[0].Completed = []policies.CompletedContent{completed(cfg, "new"), completed(cfg, "old")}
	policy.Status = statusOf(f, decide(f))
	p := decide(f)
	old := addonconfig.Fingerprint([]addonv1beta1.ConfigReference{fixture.Desires(cfg, "old")})
	assert.False(t, p.admissions["b"].isAbout("", old), "cluster b is well with what completed, and loses it because of cluster a")
	assert.Empty(t, policy.Status.Undone)
}
