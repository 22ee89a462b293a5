package agent

import (
	"fmt"

	"github.com/spokelet/spokelet/internal/addonapi"
)

// newVersions returns the watch of the versions of add-ons that the hub serves. The phase ends when the hub no longer
// serves the version in use, and the next phase uses the other one.
func (s *serving) newVersions() *addonapi.Versions {
	v := addonapi.NewVersions()
	v.Detect = func() (addonapi.Wire, error) {
		return addonapi.DetectAt(s.hub.GetConfig(), s.hub.GetHTTPClient())
	}
	v.Changed = func(now addonapi.Wire) error {
		s.end(phaseOverError(fmt.Sprintf("hub %s serves add-ons in %s and no longer in %s",
			s.target.Server.Server, now, s.wire)))
		return nil
	}
	v.Missing = func(why error) {
		if why == nil {
			s.acceptedAgain()
			return
		}
		if text := "the add-ons of the hub cannot be seen: " + why.Error(); s.state.Set(text) {
			s.mgr.GetLogger().Info("looking again", "reason", text)
		}
	}
	v.Clock = s.clock
	return v
}
