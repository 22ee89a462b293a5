package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// Who may write a Deployment with the label of an agent in its namespace decides what trace reads as the name of the
// cluster. Variables that name each other fill the memory of the person who traces: seven of ten references each are a
// text of ten million names.
func TestVariablesOfAnAgentTakeNoMemory(t *testing.T) {
	const levels = 6
	container := corev1.Container{Args: []string{"--cluster-name=" + strings.Repeat("$(V0)", 10)}}
	for i := range levels {
		container.Env = append(container.Env, corev1.EnvVar{
			Name: fmt.Sprintf("V%d", i), Value: strings.Repeat(fmt.Sprintf("$(V%d)", i+1), 10),
		})
	}
	got := len(clusterOf(container)) // Not the text itself, which has megabytes.
	assert.LessOrEqual(t, got, 4096, "the name of a cluster has 63 characters at most")
}
