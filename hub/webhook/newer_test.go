package webhook_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Objects with an element in every list, for fields of newer definitions to are in.
const (
	fullAddOnAlpha = `{"apiVersion":"` + alpha + `","kind":"ManagedClusterAddOn",
		"metadata":{"name":"hello","namespace":"c1","labels":{"l":"1"},"ownerReferences":[{"apiVersion":"v1","kind":"K",
			"name":"o","uid":"u"}]},
		"spec":{"installNamespace":"ns","configs":[{"group":"g","resource":"r","name":"a"},
			{"group":"g","resource":"r","namespace":"ns","name":"b"}]},
		"status":{"kubeClientDriver":"csr","namespace":"ns","addOnMeta":{"displayName":"d"},"healthCheck":{"mode":"Lease"},
			"supportedConfigs":[{"group":"g","resource":"r"}],"relatedObjects":[{"group":"g","resource":"r","name":"n"}],
			"conditions":[{"type":"t","status":"True","reason":"r","message":"m","lastTransitionTime":"2026-11-01T12:00:00Z"}],
			"registrations":[{"signerName":"kubernetes.io/kube-apiserver-client","subject":{"user":"u","groups":["g"]}},
				{"signerName":"a.com/b","subject":{"user":"u","organizationUnit":["o"]}}],
			"configReferences":[{"group":"g","resource":"r","name":"n","lastObservedGeneration":3,
				"desiredConfig":{"name":"n","specHash":"h"},"lastAppliedConfig":{"name":"n","specHash":"i"}}]}}`
	fullManagementAlpha = `{"apiVersion":"` + alpha + `","kind":"ClusterManagementAddOn","metadata":{"name":"hello"},
		"spec":{"addOnMeta":{"displayName":"d"},"supportedConfigs":[{"group":"g","resource":"r"},
			{"group":"g","resource":"s","defaultConfig":{"namespace":"ns","name":"n"}}],
			"installStrategy":{"type":"Placements","placements":[{"namespace":"ns","name":"p",
				"configs":[{"group":"g","resource":"r","name":"n"}],
				"rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":"25%","minSuccessTime":"5m0s",
					"mandatoryDecisionGroups":[{"groupName":"g"}]}}}]}},
		"status":{"defaultconfigReferences":[{"group":"g","resource":"r","desiredConfig":{"name":"n","specHash":"h"}}],
			"installProgressions":[{"namespace":"ns","name":"p","configReferences":[{"group":"g","resource":"r",
				"desiredConfig":{"name":"n","specHash":"h"}}]}]}}`
)

// TestFieldsOfNewerDefinitionsSurviveWhereverTheyStand puts fields of all types into random places of objects of both
// versions, and converts them there and back.
func TestFieldsOfNewerDefinitionsSurviveWhereverTheyStand(t *testing.T) {
	for name, object := range map[string]string{
		"add-on in v1alpha1": fullAddOnAlpha, "add-on in v1beta1": converted(t, beta, fullAddOnAlpha),
		"management in v1alpha1": fullManagementAlpha, "management in v1beta1": converted(t, beta, fullManagementAlpha),
	} {
		t.Run(name, func(t *testing.T) {
			from, to := alpha, beta
			if fieldsOf(t, object)["apiVersion"] == beta {
				from, to = beta, alpha
			}
			require.JSONEq(t, emptied(t, object), emptied(t, converted(t, from, converted(t, to, object))))
			for seed := range uint64(500) {
				random := rand.New(rand.NewPCG(seed, 1))
				newer := fieldsOf(t, object)
				var places []map[string]any
				collect(newer, &places)
				for range 1 + random.IntN(4) {
					places[random.IntN(len(places))]["later"+strconv.Itoa(random.IntN(3))] = anything(random, 2)
				}
				raw, err := json.Marshal(newer)
				require.NoError(t, err)
				back := converted(t, from, converted(t, to, string(raw)))
				if !assert.JSONEq(t, emptied(t, string(raw)), emptied(t, back), "seed %d: %s", seed, raw) {
					return
				}
			}
		})
	}
}

// collect returns all objects below a value, in a fixed order, but not the maps of names to texts.
func collect(value any, into *[]map[string]any) {
	switch typed := value.(type) {
	case map[string]any:
		*into = append(*into, typed)
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			if name != "labels" && name != "annotations" {
				collect(typed[name], into)
			}
		}
	case []any:
		for _, element := range typed {
			collect(element, into)
		}
	}
}

// anything returns a value of a random type that is not empty.
func anything(random *rand.Rand, depth int) any {
	n := float64(1 + random.IntN(9))
	switch random.IntN(3 + depth) {
	case 0:
		return n
	case 1:
		return "text" + strconv.Itoa(int(n))
	case 2:
		return true
	case 3:
		return []any{n, anything(random, depth-1)}
	}
	return map[string]any{"a.b": n, "c": anything(random, depth-1)}
}
