package ami

import "testing"

func TestConfigValidate(t *testing.T) {
	good := Config{Address: "a:1", Username: "u", Secret: "s"}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}

	for name, spoil := range map[string]func(*Config){
		"no address":          func(c *Config) { c.Address = "" },
		"no user name":        func(c *Config) { c.Username = "" },
		"no secret":           func(c *Config) { c.Secret = "" },
		"secret of lines":     func(c *Config) { c.Secret = "a\r\nAction: X" },
		"mask of lines":       func(c *Config) { c.Events = "on\r\nAction: X" },
		"negative timeout":    func(c *Config) { c.ActionTimeout = -1 },
		"queue under message": func(c *Config) { c.QueueBytes = c.MaxMessage - 1 },
	} {
		cfg := good
		spoil(&cfg)
		if cfg.Validate() == nil {
			t.Error(name + " is accepted")
		}
	}
}
