package normalizer

import "trunkline/internal/setting"

// Settings holds the settings of the normalizer.
type Settings struct {
	CloudEvents bool `yaml:"cloudevents" doc:"records of cc.evt have the headers of CloudEvents too (Kafka protocol binding, binary mode): ce_id, ce_source, ce_type, ce_time, ce_specversion, content-type"`
}

// Validate implements setting.Group: every value is valid.
func (Settings) Validate(*setting.Check) {}
