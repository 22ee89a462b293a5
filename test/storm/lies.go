package storm

import (
	"errors"
	"fmt"
	"time"

	"github.com/spokelet/spokelet/test/proxy"
	"github.com/spokelet/spokelet/test/sandbox"
)

// placeProxies puts a proxy between each program and each API server, if the storm is to have lies.
func (s *storm) placeProxies() error {
	if !s.Lies {
		return nil
	}
	for _, plane := range []*sandbox.ControlPlane{s.fleet.Hub, s.fleet.Hub, s.cluster.ControlPlane} {
		one, err := proxy.New(plane)
		if err != nil {
			return err
		}
		s.proxies = append(s.proxies, one)
	}
	s.fleet.Host, s.cluster.Host = s.proxies[1].Host, s.proxies[2].Host
	return s.fleet.Link.Lead(s.proxies[0].Host)
}

// lie lets the proxies lie until the next calm, each in its own way.
func (s *storm) lie() {
	for i, one := range s.proxies {
		lies := proxy.Draw(s.Seed + uint64(s.report.Calms*len(s.proxies)+i))
		fmt.Fprintf(s.Log, "%s proxy %d lies, %s\n", time.Now().UTC().Format("15:04:05.000"), i, lies)
		one.Lie(lies)
	}
}

// endLies ends the proxies and counts what they lied about.
func (s *storm) endLies() error {
	var errs []error
	for _, one := range s.proxies {
		for name, count := range one.Told() {
			s.report.Lies[name] += count
		}
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}
