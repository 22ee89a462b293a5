package virtual

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

// TestATemplateAndAProgramGiveTheSameWorks compares the add-on of an AddOnTemplate with the same add-on of a program
// that uses the library, after a straight way. Then the program goes other ways: it is replaced by other versions,
// ends, and starts again, and so does the hub manager, while both are lied to. What is different by design is left out
// in eitherWay.
// Shows: invariants/template-or-program
// Shows: hub/one-version
func TestATemplateAndAProgramGiveTheSameWorks(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
	var template, program map[string]string
	onWay(t, func(t *testing.T, w way) {
		t.Helper()
		template = goStraight(t, w)
	})
	onProgram(t, apis()[0], rand.New(rand.NewPCG(0, 0)), func(t *testing.T, w way) {
		t.Helper()
		program = goStraight(t, w)
	})
	compare(t, template, program)
	for seed := range *ways {
		random := rand.New(rand.NewPCG(uint64(seed), 24))
		api, lies := apis()[random.IntN(len(apis()))], random.IntN(2) == 0
		t.Run(fmt.Sprintf("seed %d, lies %t, %s", seed, lies, api), func(t *testing.T) {
			onProgram(t, api, random, func(t *testing.T, w way) {
				t.Helper()
				told, err := w.draws(random).wander(random, lies)
				require.NoError(t, err)
				arrive(t, w, w.among(program), told)
			})
		})
	}
}

// onProgram is onHub with a program of an author for the add-on.
func onProgram(t *testing.T, api apiOf, random *rand.Rand, take func(*testing.T, way)) {
	t.Helper()
	onHub(t, api, func(t *testing.T, w way) {
		t.Helper()
		w, err := w.byLibrary(random)
		require.NoError(t, err)
		defer w.stopAuthor()
		take(t, w)
	})
}

// compare compares what a template gives with what a program gives.
func compare(t *testing.T, template, program map[string]string) {
	t.Helper()
	ofTemplate, err := specs(template)
	require.NoError(t, err)
	ofProgram, err := specs(program)
	require.NoError(t, err)
	assert.Len(t, ofTemplate, wayClusters)
	assert.Equal(t, ofTemplate, ofProgram)
	want, err := eitherWay(template)
	require.NoError(t, err)
	got, err := eitherWay(program)
	require.NoError(t, err)
	assert.Empty(t, difference(want, got))
}
