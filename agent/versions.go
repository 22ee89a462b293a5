package agent

import (
	"fmt"

	"github.com/spokelet/spokelet/internal/addonapi"
)

// newVersions notices when the hub no longer serves the version of add-ons that this phase uses. The phase ends then,
// and the next one uses the other version.
func (s *serving) newVersions() *addonapi.Versions {
	v := addonapi.NewVersions()
	v.Detect = func() (addonapi.Wire, error) {
		return addonapi.DetectAt(s.hub.GetConfig(), s.hub.GetHTTPClient())
	}
	v.Changed = func(now addonapi.Wire) error {
		s.end(phaseOverError(fmt.Sprintf("hub %s serves add-ons in %s and no longer in %s",
			s.boot.server.Server, now, s.wire)))
		return nil
	}
	v.Missing = func(why error) {
		if why == nil {
			s.takenAgain()
			return
		}
		if text := "the add-ons of the hub cannot be seen: " + why.Error(); s.state.set(text) {
			s.mgr.GetLogger().Info("looking again", "reason", text)
		}
	}
	v.Clock = s.clock
	return v
}
