package attacks_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// atLeast is how many requests must get past the API server for the suite to be worth its name.
const atLeast = 60

// allForgeries are the cases of all tables.
func allForgeries(t *testing.T) map[string]forgery {
	t.Helper()
	all := map[string]forgery{}
	for _, table := range []map[string]forgery{
		theftsOfClusters(), theftsOfAddons(), forgedLabels(), commonNames(), organizations(), attributes(),
		alternativeNames(), usages(), encodings(), strengths(), otherSigners(), customRequests(), byHand(),
		refusedContents(), refusedForms(),
	} {
		for sentence, a := range table {
			require.NotContains(t, all, sentence, "two cases with the same sentence")
			all[sentence] = a
		}
	}
	return all
}

// sent is a request that got past the API server.
type sent struct {
	forgery
	request *certificatesv1.CertificateSigningRequest
}

// Shows: registration/organization-compared-exactly, registration/other-cluster-refused, registration/abuse-refused
func TestNoneOfTheseRequestsPasses(t *testing.T) {
	before := counters(t)
	batch := send(t, allForgeries(t))
	require.GreaterOrEqual(t, len(batch), atLeast)
	approveByHand(t, batch)

	// These were created after all of the batch, and the hub takes requests in turn.
	approvals := honest(t)
	for sentence, s := range batch {
		t.Run(sentence, func(t *testing.T) {
			suite.Eventually(t, func() error { return told(t.Context(), s) })
			assertNotPassed(t, s)
		})
	}

	t.Run("and none when all are judged again", func(t *testing.T) {
		touchAddOns(t)
		approvals += honest(t)
		for sentence, s := range batch {
			assertNotPassed(t, s)
			assert.NoError(t, told(t.Context(), s), sentence)
		}
	})
	t.Run("and each is counted once under each of its rules", func(t *testing.T) {
		got := since(counters(t), before)
		want := expected(batch)
		want["approved"], want["signed"] = float64(approvals), float64(approvals/2)
		assert.Equal(t, want, got)
	})
	t.Run("and each is logged with its rules and who asked", func(t *testing.T) {
		lines := refusals(t)
		for sentence, s := range batch {
			for _, rule := range s.rules {
				assert.NotZero(t, lines[refusal{rule, s.request.Name, s.request.Spec.Username}], "%s: %s", sentence, rule)
			}
		}
	})
}

// send sends all requests and returns those that got past the API server. What the API server already refuses, it
// must refuse in the words of the case.
func send(t *testing.T, all map[string]forgery) map[string]*sent {
	t.Helper()
	batch := map[string]*sent{}
	refused := 0
	for _, sentence := range slices.Sorted(maps.Keys(all)) {
		a := all[sentence]
		request := a.build(t)
		err := shared.clients[a.as].Create(t.Context(), request)
		if a.refused != "" {
			refused++
			t.Run(sentence, func(t *testing.T) { require.ErrorContains(t, err, a.refused) })
			continue
		}
		if err != nil {
			t.Errorf("%s: the API server refuses the request: %s", sentence, err)
			continue
		}
		deleteAfterwards(t, request)
		batch[sentence] = &sent{a, request}
	}
	t.Logf("%d requests got past the API server, %d were refused by it", len(batch), refused)
	return batch
}

// approveByHand plays a person who approves without looking, after the hub refused.
func approveByHand(t *testing.T, batch map[string]*sent) {
	t.Helper()
	for sentence, s := range batch {
		if !s.byHand {
			continue
		}
		if len(s.rules) > 0 {
			suite.Eventually(t, func() error { return toldRules(t.Context(), s, s.rules[:1]) })
		}
		var current certificatesv1.CertificateSigningRequest
		require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKeyFromObject(s.request), &current), sentence)
		require.True(t, csr.Undecided(&current), sentence)
		current.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByHand",
		}}
		current.ResourceVersion = "" // the hub may comment on it at the same moment
		require.NoError(t, shared.admin.SubResource("approval").Update(t.Context(), &current), sentence)
	}
}

// honest sends one good request of each kind and waits for the certificates; half of them are for custom signers.
func honest(t *testing.T) (n int) {
	t.Helper()
	good := []csr.Request{
		csr.ForCluster("cluster1", agentName), forAddon("cluster1", "hello", kube),
		forAddon("cluster1", "hello", custom), forAddon("cluster1", "vault", custom),
	}
	requests := make([]*certificatesv1.CertificateSigningRequest, 0, len(good))
	for _, asks := range good {
		request := forgery{asks: asks}.build(t)
		require.NoError(t, shared.clients[agent1].Create(t.Context(), request))
		deleteAfterwards(t, request)
		requests = append(requests, request)
	}
	for _, request := range requests {
		suite.Eventually(t, func() error { return shared.issued(t.Context(), request) })
	}
	return len(good)
}

// touchAddOns changes all add-ons, so that all their unfinished requests are judged again.
func touchAddOns(t *testing.T) {
	t.Helper()
	var list addonv1alpha1.ManagedClusterAddOnList
	require.NoError(t, shared.admin.List(t.Context(), &list))
	for i := range list.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"`+unique()+`"}}}`))
		require.NoError(t, shared.admin.Patch(t.Context(), &list.Items[i], patch))
	}
}

// told reports whether the Events on a request name its rules and no other. One rule may be told twice: when it keeps a
// request from being approved, and, once a person approved it, from being signed.
func told(ctx context.Context, s *sent) error { return toldRules(ctx, s, s.rules) }

func toldRules(ctx context.Context, s *sent, want []string) error {
	var events corev1.EventList
	if err := shared.admin.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault),
		client.MatchingFields{"involvedObject.uid": string(s.request.UID)}); err != nil {
		return err
	}
	var have []string
	for _, event := range events.Items {
		if event.InvolvedObject.Name != s.request.Name || len(event.Message) > 1024 {
			return fmt.Errorf("event %s on %q has a message of %d bytes", event.Name, event.InvolvedObject.Name, len(event.Message))
		}
		have = append(have, event.Reason)
	}
	slices.Sort(have)
	have = slices.Compact(have)
	if want := slices.Sorted(slices.Values(want)); !slices.Equal(have, want) {
		return fmt.Errorf("the rules in the Events on %.80s are %q, and should be %q", s.request.Name, have, want)
	}
	return nil
}

// assertNotPassed checks that nobody but a person approved the request, that it has no certificate, and that nobody
// denied it either.
func assertNotPassed(t *testing.T, s *sent) {
	t.Helper()
	var current certificatesv1.CertificateSigningRequest
	require.NoError(t, shared.admin.Get(t.Context(), client.ObjectKeyFromObject(s.request), &current))
	require.Equal(t, s.request.UID, current.UID)
	assert.Empty(t, current.Status.Certificate)
	if !s.byHand {
		assert.True(t, csr.Undecided(&current))
		return
	}
	for _, c := range current.Status.Conditions {
		if c.Status != corev1.ConditionFalse {
			assert.Equal(t, "ByHand", c.Reason)
		}
	}
}

// expected counts the rules of a batch by kind, as the metrics do.
func expected(batch map[string]*sent) map[string]float64 {
	counts := map[string]float64{}
	for _, s := range batch {
		kind := "cluster"
		if _, addon := s.request.Labels[names.LabelAddonName]; addon {
			kind = "addon"
		}
		for _, rule := range s.rules {
			counts["refused "+kind+" "+rule]++
		}
	}
	return counts
}

// deleteAfterwards lets the tests run again on the same control plane.
func deleteAfterwards(t *testing.T, object client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { assert.NoError(t, client.IgnoreNotFound(shared.admin.Delete(ctx, object))) })
}
