package approval_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	// weatherName is an add-on whose program is made with the library for authors.
	weatherName = "weather"
	// stationLabel is the label of a cluster by which the program decides.
	stationLabel = "weather.example.com/station"
	// weatherLifetime is how long a certificate of the author's signer lives.
	weatherLifetime = 20 * time.Minute
)

// weather lets the hub approve only for clusters with a station.
func weather(t suite.T) addon.Agent {
	t.Helper()
	agent, err := addon.New(addon.Options{
		Name: weatherName, KubeClient: &addon.KubeClient{},
		CustomSigners: []addon.CustomSigner{{
			SignerName: signerName, Lifetime: weatherLifetime,
			CA: types.NamespacedName{Namespace: caNamespace, Name: "brief"},
		}},
		Manifests: addon.ManifestsFunc(func(context.Context, addon.Input) ([]runtime.Object, error) { return nil, nil }),
		CSRApproveCheck: func(_ context.Context, r addon.Request, _ *certificatesv1.CertificateSigningRequest) error {
			switch r.Cluster.Labels[stationLabel] {
			case "":
				return &addon.InvalidError{Message: "the cluster has no label " + stationLabel}
			case "building":
				return &addon.NotReadyError{Message: "the station is being built"}
			case "broken":
				panic("no station")
			case "unreachable":
				return errors.New("the list of stations does not answer")
			}
			return nil
		},
	})
	require.NoError(t, err)
	return agent
}

// enableWeather makes a cluster with the add-on, and returns a request for each of its registrations.
func enableWeather(t *testing.T, cluster, station string) (*clusterv1.ManagedCluster, []csr.Request) {
	t.Helper()
	created := createCluster(t, cluster, func(c *clusterv1.ManagedCluster) {
		c.Labels = map[string]string{stationLabel: station}
	})
	create(t, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: weatherName}})
	resolved, err := weather(t).Resolve(t.Context(), addon.Request{
		Cluster: created, AddOn: &addonv1beta1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: weatherName},
		},
	})
	require.NoError(t, err)
	requests := make([]csr.Request, 0, len(resolved.Registrations))
	for _, registration := range resolved.Registrations {
		request, err := csr.ForAddon(cluster, weatherName, registration)
		require.NoError(t, err)
		requests = append(requests, request)
	}
	require.Len(t, requests, 2)
	return created, requests
}

// Shows: hub/library-approval
func TestTheProgramOfAnAddOnMayRefuseToApprove(t *testing.T) {
	t.Parallel()
	for station, tc := range map[string]struct{ kind, says string }{
		"":         {corev1.EventTypeWarning, "the cluster has no label " + stationLabel},
		"building": {corev1.EventTypeNormal, "the station is being built"},
		"broken":   {corev1.EventTypeWarning, "panicked at approval/library_test.go:"},
	} {
		t.Run("station "+station, func(t *testing.T) {
			t.Parallel()
			name := "station" + station
			cluster, requests := enableWeather(t, name, station)
			request := ask(t, agentOf(t, name), requests[0])
			event := awaitEvent(t, request, "RefusedByAddon")
			assert.Equal(t, tc.kind, event.Type)
			assert.Contains(t, event.Message, "the program of the add-on does not agree. add-on weather on cluster "+name+": ")
			assert.Contains(t, event.Message, tc.says)
			assertOpen(t, request)

			cluster.Labels[stationLabel] = "ready"
			require.NoError(t, plane.Client.Update(t.Context(), cluster))
			certificate := issued(t, request)
			assert.Equal(t, csr.AddonUser(name, weatherName, weatherName), certificate.Subject.CommonName)
		})
	}
}

// Shows: hub/library-approval
func TestAProgramThatCannotDecideIsAskedAgain(t *testing.T) {
	t.Parallel()
	cluster, requests := enableWeather(t, "station-unreachable", "unreachable")
	request := ask(t, agentOf(t, cluster.Name), requests[0])
	other, otherRequests := enableWeather(t, "station-reachable", "ready")
	issued(t, ask(t, agentOf(t, other.Name), otherRequests[0]))
	assertOpen(t, request)
	cluster.Labels[stationLabel] = "ready"
	require.NoError(t, plane.Client.Update(t.Context(), cluster))
	issued(t, request)
}

// Shows: hub/library-approval
func TestAProgramIsAskedOnlyAboutRequestsOfItsRegistrations(t *testing.T) {
	t.Parallel()
	cluster, requests := enableWeather(t, "station-forged", "broken")
	spoilt := requests[0]
	spoilt.Groups = append(spoilt.Groups, "system:masters-of-weather")
	event := awaitEvent(t, ask(t, agentOf(t, cluster.Name), spoilt), "SubjectNotExpected")
	assert.NotContains(t, event.Message, "panicked")
}

// Shows: hub/library-signing
func TestACertificateLivesAsLongAsTheAuthorOfItsSignerAllows(t *testing.T) {
	t.Parallel()
	createCA(t, "brief", nil)
	cluster, requests := enableWeather(t, "station-brief", "ready")
	request := ask(t, agentOf(t, cluster.Name), requests[1])
	began := time.Now()
	certificate := issued(t, request)
	assert.WithinDuration(t, began.Add(weatherLifetime), certificate.NotAfter, time.Minute)
	assert.Equal(t, csr.AddonUser(cluster.Name, weatherName, weatherName), certificate.Subject.CommonName)
}
