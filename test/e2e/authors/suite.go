package authors

import (
	"time"

	"github.com/spokelet/spokelet/test/e2e/suite"
)

// clusterName is the name of the managed cluster on the hub.
const clusterName = "cluster1"

// New returns the suite.
func New() *suite.Suite {
	install, weather := []string{"install"}, []string{"add-on-with-a-chart"}
	return &suite.Suite{
		Name:     "authors",
		Clusters: []suite.ClusterSpec{{Role: suite.Hub}, {Role: suite.Managed}},
		Samples:  true,
		Scenarios: []suite.Scenario{
			{Name: "install", Run: installBoth, Doc: "Hub manager and agent are installed, and the cluster joins"},
			{
				Name: "add-on-with-a-chart", Needs: install, Run: weatherRuns, Timeout: 8 * time.Minute,
				Doc: "The pod of the program deploys the add-on weather, whose agent reports to the hub under its own certificate",
			},
			{
				Name: "its-configuration-changes", Needs: weather, Run: weatherChanges,
				Doc: "A changed variable is rolled out to the pod of the agent",
			},
			{
				Name: "its-job-runs-before-it-goes", Needs: weather, Run: weatherGoes,
				Doc: "The add-on is deleted: its Job closes the last report, then everything on the cluster goes",
			},
			{
				Name: "add-on-of-plain-yaml", Needs: install, Run: uptimeRuns,
				Doc: "The add-on uptime is available by the Lease that its agent renews",
			},
		},
	}
}
