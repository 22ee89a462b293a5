package gate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

const many = 3000

func fleetOf(n int) []gate.Cluster {
	all := make([]gate.Cluster, n)
	zones := []string{"Europe/Berlin", "Asia/Tokyo", "America/New_York", "UTC", "Australia/Lord_Howe"}
	for i := range all {
		all[i] = gate.Cluster{
			Labels: map[string]string{"name": fmt.Sprint("c", i), "kind": "shop", "vendor": "k3s", "x": "y", "z": "w"},
			Claims: map[string]string{"zone": zones[i%len(zones)]},
		}
	}
	return all
}

func judgeAll(b *testing.B, ws []policies.MaintenanceWindow, n int) {
	b.Helper()
	clusters := fleetOf(n)
	b.ReportAllocs()
	for b.Loop() {
		g := gate.New("logs", nil, ws)
		for i := range clusters {
			g.Judge(clusters[i], "c", noon())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/plan")
}

func eachOwn(edit func(i int, s *policies.MaintenanceWindowSpec)) []policies.MaintenanceWindow {
	ws := make([]policies.MaintenanceWindow, many)
	for i := range ws {
		ws[i] = window(fmt.Sprint("w", i), "Allow", fmt.Sprintf("%d %d * * *", i%60, i%24), time.Hour)
		edit(i, &ws[i].Spec)
	}
	return ws
}

// Each cluster has a window of its own, by a label, of its own zone.
func BenchmarkAPlanOfOwnWindows(b *testing.B) {
	judgeAll(b, eachOwn(func(i int, s *policies.MaintenanceWindowSpec) {
		s.ClusterSelector.MatchLabels, s.TimeZoneClaim = map[string]string{"name": fmt.Sprint("c", i)}, "zone"
	}), many)
}

func BenchmarkAPlanOfOwnWindowsByExpression(b *testing.B) {
	judgeAll(b, eachOwn(func(i int, s *policies.MaintenanceWindowSpec) {
		s.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprint("c", i)}}}
	}), many)
}

// All windows begin with the label that all shops have (the first by name), and then select one.
func BenchmarkAPlanOfOwnWindowsWithACommonLabel(b *testing.B) {
	judgeAll(b, eachOwn(func(i int, s *policies.MaintenanceWindowSpec) {
		s.ClusterSelector.MatchLabels = map[string]string{"name": fmt.Sprint("c", i), "kind": "shop"}
	}), many)
}

// One window, which is how people may say "never": of an hour, each hour.
func BenchmarkAPlanOfOneWindowThatDeniesForEverByHours(b *testing.B) {
	judgeAll(b, []policies.MaintenanceWindow{window("never", "Deny", "0 * * * *", time.Hour)}, 10)
}

func BenchmarkAPlanOfOneWindowThatDeniesForEverByMinutes(b *testing.B) {
	judgeAll(b, []policies.MaintenanceWindow{window("never", "Deny", "* * * * *", time.Hour)}, 10)
}

// A freeze each night and one of the weekend that never meet a window that allows: it is looked at 1,000 times.
func BenchmarkAPlanOfAWindowThatNeverOpens(b *testing.B) {
	judgeAll(b, []policies.MaintenanceWindow{
		window("allow", "Allow", "0 1 * * *", time.Hour), window("deny", "Deny", "0 0 * * *", 4*time.Hour),
	}, 10)
}

func BenchmarkAPlanOfALongWindow(b *testing.B) {
	judgeAll(b, []policies.MaintenanceWindow{window("year", "Deny", "* * * * *", 8784*time.Hour)}, 1)
}

// A pass of the status of one window; a label of one cluster causes one for each window.
func BenchmarkAReport(b *testing.B) {
	clusters := fleetOf(many)
	w := window("w", "Allow", "0 1 * * *", time.Hour, labelled(map[string]string{"name": "c5"}))
	b.ReportAllocs()
	for b.Loop() {
		gate.Report(&w, clusters, noon())
	}
}

// One of a usual fleet: each night by the clock of each cluster.
func BenchmarkAPlanOfOneNight(b *testing.B) {
	judgeAll(b, []policies.MaintenanceWindow{
		window("night", "Allow", "0 1 * * *", 4*time.Hour, func(s *policies.MaintenanceWindowSpec) { s.TimeZoneClaim = "zone" }),
	}, many)
}

// 30 February.
func BenchmarkAPlanOfAWindowThatNeverComes(b *testing.B) {
	judgeAll(b, []policies.MaintenanceWindow{window("never", "Allow", "0 0 30 2 *", time.Hour)}, 100)
}

// Each change of a label of a cluster is looked at for each window: there may be one for each of 3,000 clusters.
func BenchmarkAChangeOfACluster(b *testing.B) {
	all := make([]policies.MaintenanceWindow, 3000)
	for i := range all {
		all[i] = window(fmt.Sprint("w", i), "Allow", "@daily", time.Hour, labelled(map[string]string{"name": fmt.Sprint("c", i)}))
	}
	handler := (&gate.Reader{Client: hub{all: all}}).Moves(0,
		func(context.Context, client.Object, []policies.MaintenanceWindow) []ctrl.Request { return nil })
	was, is := cluster(map[string]string{"name": "c5", "a": "1"}, "UTC"), cluster(map[string]string{"name": "c5", "a": "2"}, "UTC")
	b.ReportAllocs()
	for b.Loop() {
		handler.Update(b.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, nil)
	}
}
