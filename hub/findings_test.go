package hub

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/hub/definition"
)

func TestAVersionThatIsNotServedIsReportedWithWhatToDo(t *testing.T) {
	findings := []definition.Finding{{
		Definition: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "addons.example.com"}},
		Message:    "run a command",
	}}
	other := errors.New("some other error")
	assert.Equal(t, other, withFindings(other, findings))
	missing := fmt.Errorf("building a cache: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "AddOn"}})
	assert.Equal(t, missing, withFindings(missing, nil))
	assert.Equal(t, missing.Error()+"\ndefinition addons.example.com: run a command", withFindings(missing, findings).Error())
}
