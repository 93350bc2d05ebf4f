package settings

import (
	"reflect"
	"strings"

	"trunkline/ingest/feed"
	"trunkline/internal/setting"
	"trunkline/origination"
)

// Validate implements setting.Group. It checks the settings that belong to package app,
// and then the groups in their order.
func (s *Settings) Validate(c *setting.Check) {
	c.HostPort("listen", s.Listen)
	c.HostPort("metrics_listen", s.MetricsListen)
	c.Must(s.DataDir != "", "data_dir", "name a directory")
	c.Must(s.DiskMinFree >= 0, "disk_min_free", "must not be negative, is %s", s.DiskMinFree)
	c.Must(len(s.Roles) > 0, "roles", "name at least one of %s", strings.Join(AllRoles(), ", "))

	for _, role := range s.Roles {
		c.OneOf("roles", role, AllRoles()...)
	}

	c.Positive("drain_timeout", s.DrainTimeout)
	c.Must(s.DrainDelay == 0 || 0 < s.DrainDelay && s.DrainDelay < s.DrainTimeout, "drain_delay",
		"must be less than drain_timeout (%s) and not negative, is %s", s.DrainTimeout, s.DrainDelay)
	c.Must(s.SIP.Server.TLSListen != "" || s.SIP.Calls.Trunk.Transport != "tls", "sip.trunk.transport",
		"tls needs sip.tls_listen: the trunk's own requests come there")
	validateGroups(reflect.ValueOf(s).Elem(), c)
	// A list is no group: validateGroups leaves it out.
	feed.ValidateConfigs(c, "feeds", s.Feeds)
}

// validateGroups validates the groups in v, a struct of settings. A group that implements
// setting.Group validates everything in it.
func validateGroups(v reflect.Value, c *setting.Check) {
	for field := range structFields(v) {
		if field.value.Kind() != reflect.Struct {
			continue
		}

		inner := c
		if !field.inline {
			inner = c.Group(field.name)
		}

		if g, ok := field.value.Interface().(setting.Group); ok {
			g.Validate(inner)
		} else {
			validateGroups(field.value, inner)
		}
	}
}

// Validate implements setting.Group.
func (l Log) Validate(c *setting.Check) {
	c.OneOf("level", l.Level, "debug", "info", "warn", "error")
	c.OneOf("format", l.Format, "text", "json")
}

// Validate implements setting.Group.
func (t TLS) Validate(c *setting.Check) {
	c.OneOf("mode", t.Mode, "auto", "files", "off")
	c.Together("cert_file", t.CertFile, "key_file", t.KeyFile)
	c.Must(t.Mode != "files" || t.CertFile != "", "mode", "files needs tls.cert_file and tls.key_file")
}

// Validate implements setting.Group.
func (k Kafka) Validate(c *setting.Check) {
	k.Settings.Validate(c)
	k.Embedded.Validate(c)
	c.Must(k.Embedded.Listen == "" || len(k.Brokers) == 0, "embedded_listen",
		"there is no embedded broker when kafka.brokers is set: unset one")
}

// Validate implements setting.Group. A driver's settings are checked only if it is in
// use.
func (o Origination) Validate(c *setting.Check) {
	o.Settings.Validate(c)
	if o.Driver == origination.DriverAsterisk {
		o.Asterisk.Validate(c.Group("asterisk"))
	}
	if o.Driver == origination.DriverFreeSWITCH {
		o.FreeSWITCH.Validate(c.Group("freeswitch"))
	}

	if o.Driver == origination.DriverKazoo {
		o.Kazoo.Validate(c.Group("kazoo"))
	} else {
		o.Kazoo.ValidateAccounts(c.Group("kazoo"))
	}
}
