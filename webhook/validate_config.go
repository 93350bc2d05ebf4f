package webhook

import (
	"context"
	"fmt"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/netguard"
)

// FilterChecker validates filters by the rules of the events channel.
type FilterChecker interface {
	// CheckFilter checks the filter of an account's channel login or webhook and returns it without
	// repeated entries. Returns fault.KindInvalid that names every invalid field.
	CheckFilter(ctx context.Context, accountID string, f identity.Filter) (identity.Filter, error)
}

// InvalidMessage is the message of the error for invalid fields.
const InvalidMessage = "Invalid webhook"

// validateConfig returns the config with its defaults. Returns fault.KindInvalid, which
// names every invalid field.
func (s *Service) validateConfig(ctx context.Context, accountID string, c Config) (Config, error) {
	var faults []fault.Field
	code, text := netguard.HTTP.Check(c.URL, netguard.AllowsLoopback(s.settings.AllowNetworks))
	if code != "" {
		faults = append(faults, fault.Field{Field: "url", Code: code, Message: text})
	}

	switch c.Format {
	case "":
		c.Format = FormatTrunkline
	case FormatTrunkline, FormatCloudEvents:
	default:
		faults = append(faults,
			fault.Field{Field: "format", Code: "unsupported",
				Message: fmt.Sprintf("must be %s or %s", FormatTrunkline, FormatCloudEvents)})
	}

	if c.Secret != "" {
		_, err := parseSecret(c.Secret)
		if err != nil {
			faults = append(faults, fault.Field{Field: "secret", Code: "invalid", Message: err.Error()})
		}
	}

	distinct, err := s.filters.CheckFilter(ctx, accountID, c.Filters)
	if fault.KindOf(err) == fault.KindInvalid {
		for _, f := range fault.As(err).Fields {
			f.Field = "filters." + f.Field
			faults = append(faults, f)
		}
	} else if err != nil {
		return Config{}, err
	}

	if len(faults) > 0 {
		return Config{}, fault.Invalid(InvalidMessage, faults...)
	}

	c.Filters = distinct
	return c, nil
}
