package rtp

import (
	"strconv"
	"strings"

	"trunkline/internal/setting"
)

// Settings holds the settings of the RTP ports. Of the ports only even ones are used; the odd port above each
// is left for RTCP that a peer may send.
type Settings struct {
	Ports string `yaml:"rtp_ports" doc:"UDP ports of media, first-last"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings { return Settings{Ports: "20000-29999"} }

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	_, _, ok := s.PortRange()
	c.Must(ok, "rtp_ports", "want ports such as 20000-29999, got %q", s.Ports)
}

// PortRange returns the first and last port, for Config.
func (s Settings) PortRange() (first, last uint16, ok bool) {
	from, to, dash := strings.Cut(s.Ports, "-")
	a, errA := strconv.ParseUint(strings.TrimSpace(from), 10, 16)
	b, errB := strconv.ParseUint(strings.TrimSpace(to), 10, 16)
	return uint16(a), uint16(b), dash && errA == nil && errB == nil && a > 0 && b > a
}
