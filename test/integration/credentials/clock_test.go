package credentials_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

func TestAClockThatIsADayAheadLeadsToNoRequestsWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, aware := range map[string]bool{"the agent knows": true, "the agent does not know": false} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, "clock")
			m.fast, m.aware = 25*time.Hour, aware
			m.createNamespace(m.addonNamespace)
			m.serve(m.accepted())
			m.enable(addonv1beta1.HealthCheckModeCustomized, m.addonNamespace, customSigner(ownSigner))
			m.sign(m.awaitRequests(hello, 1)[0]) // for an hour
			if aware {
				told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
				assert.Contains(t, told.Message, "; the clock of the agent is about 25h0m0s ahead of the clock of the hub: set it right")
				m.awaitSecret(m.addonNamespace, helloOwn)
			} else {
				told := m.awaitCondition("ClusterCertificateRotated", metav1.ConditionFalse, "ClientCertificateUpdateFailed")
				assert.Contains(t, told.Message, "the certificate expired at")
				assert.Contains(t, told.Message, "; a new csr is made at")
			}
			m.quiet(3)
			assert.Len(t, m.requests(hello), 1)
		})
	}
}
