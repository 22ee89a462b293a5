package causes

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Life is from when until when a certificate is valid.
type Life struct{ From, To time.Time }

const (
	// lifeLayout is how agents, also those of OCM, write an instant into the message of ClusterCertificateRotated.
	lifeLayout = "2006-01-02 15:04:05 -0700 MST"
	// replaced is the share of its life after which an agent has replaced a certificate, with time to spare: ours begin at
	// 75 percent, and OCM's at 80.
	replaced = 0.85
)

// LifeOf returns the life of the certificate of an agent or of an add-on, by the message of its condition. An agent
// that cannot renew it says nothing of it.
func LifeOf(conditions []metav1.Condition) (Life, bool) {
	c := meta.FindStatusCondition(conditions, names.ConditionCertificateRotated)
	if c == nil {
		return Life{}, false
	}
	_, life, _ := strings.Cut(c.Message, " starting from ")
	first, last, _ := strings.Cut(life, " to ")
	from, errFrom := time.Parse(lifeLayout, first)
	to, errTo := time.Parse(lifeLayout, last)
	return Life{From: from, To: to}, errFrom == nil && errTo == nil
}

// Late reports whether the certificate should have been replaced.
func (l Life) Late(now time.Time) bool {
	return now.Sub(l.From) > time.Duration(replaced*float64(l.To.Sub(l.From)))
}
