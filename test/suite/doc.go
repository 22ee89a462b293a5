// Package suite is what the integration suites are built from, so that a new one is a page. Main prepares a package:
// it starts control planes of package sandbox, installs what manifests/ ships, and runs hub managers and agents in the
// process of the test, each as the ServiceAccount that is shipped and with no right beyond its. Programs that must be
// processes of their own are run by package fleet.
//
//	var hub *suite.Plane
//
//	func TestMain(m *testing.M) {
//		suite.Main(m, func(t suite.T) {
//			hub = suite.Start(t, sandbox.Options{Name: "hub"}, manifests.CRDs(), manifests.Hub())
//			suite.StartHub(t, hub)
//		})
//	}
//
//	func TestAClusterIsAccepted(t *testing.T) {
//		t.Parallel()
//		...
//		suite.Eventually(t, func() error { ... return an error that says what is still missing ... })
//	}
//
// Everything that is started ends with the test or with the package. A test that failed shows the end of the log of
// each program that it started; TEST_LOG names a file that receives all logs.
//
// Tests own what they write: clusters and namespaces with names of their own. So most of them run in parallel.
//
// Where time matters, reconcilers are called by hand: see Reconciler.
package suite
