package placement

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// mostAllocated is how much one Placement may take: a tenth of the limit of the hub manager.
const mostAllocated = 51 << 20

// allocatedBy returns the number of bytes that a function takes, whether or not they are free afterwards.
func allocatedBy(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Shows: security/expressions-take-little-memory
//
// A tenant writes a Placement in a namespace of its own, which needs no ManagedClusterSetBinding.
func TestATenantCannotFillTheMemoryByARegularExpression(t *testing.T) {
	long := strings.Repeat("a", 500)
	for sentence, text := range map[string]string{
		"a constant":              fmt.Sprintf(`managedCluster.metadata.name.matches("(%s){1000}")`, long),
		"one that is made of two": fmt.Sprintf(`managedCluster.metadata.name.matches("(" + "%s" + "){1000}")`, long),
		"one that finds":          fmt.Sprintf(`managedCluster.metadata.name.find("(%s){1000}") == ""`, long),
		"one that finds all":      fmt.Sprintf(`managedCluster.metadata.name.findAll("(%s){1000}").size() == 0`, long),
	} {
		t.Run(sentence, func(t *testing.T) {
			var status clusterv1beta1.PlacementStatus
			taken := allocatedBy(func() {
				f := celFacts(byCEL(text))
				status = conclude(f, decided(f), true, nil)
			})
			assert.Less(t, taken, uint64(mostAllocated), "%d bytes of text", len(text))
			assert.Contains(t, fmt.Sprint(status.Conditions), "the regular expression", "the tenant is told")
		})
	}
}

// Shows: security/expressions-take-little-memory
//
// The exponent is small for a test: with 2147483640, it takes all memory and never ends, and nothing interrupts it.
func TestATenantCannotStopAWorkerByAQuantity(t *testing.T) {
	for _, text := range []string{
		`quantity("1e-4000000").isGreaterThan(quantity("1"))`, `isQuantity("1e-4000000")`,
		`quantity("1e-40" + "00000").sign() == 1`,
	} {
		taken := allocatedBy(func() { decided(celFacts(byCEL(text))) })
		assert.Less(t, taken, uint64(mostAllocated), text)
	}
}

// Shows: security/expressions-take-little-memory
//
// A Placement of 16 KiB takes three megabytes, compiled, and a tenant can create any number.
func TestTheExpressionsOfAllPlacementsTakeLittleMemory(t *testing.T) {
	const placements, most = 10, 20 << 20
	var kept []*rules
	var before, after runtime.MemStats
	m := &memory{}
	_, err := m.environmentOf()
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range placements {
		var texts []string
		for n := range maxExpressions {
			texts = append(texts, fmt.Sprintf("managedCluster.kind == '%d/%d'", i, n)+strings.Repeat("||[1].all(x,x>0)", 28))
		}
		r := parse(celFacts(byCEL(texts...)).placement.Spec, m.compile)
		require.NoError(t, r.misconfigured)
		kept = append(kept, r)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(m)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(most))
}
