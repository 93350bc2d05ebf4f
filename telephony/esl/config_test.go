package esl

import "testing"

func TestConfigValidate(t *testing.T) {
	good := Config{Address: "a:1", Password: "p"}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}

	for name, spoil := range map[string]func(*Config){
		"no address":          func(c *Config) { c.Address = "" },
		"no password":         func(c *Config) { c.Password = "" },
		"password with lines": func(c *Config) { c.Password = "a\n\nexit" },
		"negative timeout":    func(c *Config) { c.CommandTimeout = -1 },
		"queue under message": func(c *Config) { c.QueueBytes = c.MaxMessage - 1 },
	} {
		cfg := good
		spoil(&cfg)
		if cfg.Validate() == nil {
			t.Error(name + " is accepted")
		}
	}
}
