package freeswitch

import (
	"context"
	"errors"
	"strings"

	"trunkline/internal/fault"
	"trunkline/origination/dialtext"
	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

// queryAPI runs an api command on a connection. ok is false if the switch refuses it; an error is an error
// of the connection.
func queryAPI(ctx context.Context, conn *esl.Conn, command string) (text string, ok bool, err error) {
	text, err = conn.API(ctx, command)
	if _, ok := errors.AsType[*esl.Refusal](err); ok {
		return "", false, nil
	}
	return strings.TrimSpace(text), err == nil, err
}

// queryDomainAndRate queries and logs the switch's domain and sessions-per-second.
func (p *platform) queryDomainAndRate(ctx context.Context, conn *esl.Conn) (switchDomain string, err error) {
	attributes := []any{"address", p.cfg.Address}
	if p.cfg.Domain == "" {
		text, ok, err := queryAPI(ctx, conn, "global_getvar domain")
		if err != nil {
			return "", err
		}

		ok = ok && text != "" && isSafe(text, domainChars)
		if ok {
			switchDomain = text
		}

		attributes = append(attributes, "domain", switchDomain)
	} else {
		attributes = append(attributes, "configured_domain", p.cfg.Domain)
	}

	sessions, err := p.queryRate(ctx, conn)
	if err != nil {
		return "", err
	}

	p.log.InfoContext(ctx, "event socket connected", append(attributes, "sessions_per_second", sessions)...)
	if sessions == 0 {
		p.log.WarnContext(ctx, "sessions-per-second of the switch unknown: calls are not paced", "command", "status")
	}

	return switchDomain, nil
}

// domainOf returns the value of {domain} in an order's dial strings: the configured domain; else the
// account's if the switch's directory has the owner in it; else the switch's own if that has the
// owner; else the account's.
func (p *platform) domainOf(ctx context.Context, conn *connection, accountDomain, extension string) (string, error) {
	if p.cfg.Domain != "" {
		return p.cfg.Domain, nil
	}

	if err := checkValues(
		dialtext.Value{Field: "presence_id", Text: extension, AlsoAllowed: numberChars, MaxBytes: maxNumberBytes},
		dialtext.Value{Field: "domain", Text: accountDomain, AlsoAllowed: domainChars,
			MaxBytes: maxDomainBytes}); err != nil {
		return "", err
	}

	if conn == nil || !strings.Contains(p.cfg.Owner+p.cfg.Destination, "{domain}") {
		return accountDomain, nil // without a connection the order fails anyway
	}

	conn.mu.Lock()
	found := conn.domains[accountDomain]
	conn.mu.Unlock()

	if found != "" {
		return found, nil
	}

	for _, candidate := range []string{accountDomain, conn.switchDomain} {
		if candidate == "" {
			continue
		}

		answer, _, err := queryAPI(ctx, conn.Conn, "user_exists id "+extension+" "+candidate)
		if err != nil {
			return "", fault.Unavailable(err, eventdriver.RetryAfter, "the phone platform did not answer")
		}

		if answer != "true" {
			continue
		}

		p.log.InfoContext(ctx, "domain of an account on the switch", "account_domain", accountDomain,
			"domain", candidate)
		conn.mu.Lock()
		conn.domains[accountDomain] = candidate
		conn.mu.Unlock()

		return candidate, nil
	}

	p.log.WarnContext(ctx,
		"owner of a call unknown to the switch's directory: set origination.freeswitch.domain to the domain of its users",
		"account_domain", accountDomain, "switch_domain", conn.switchDomain)

	return accountDomain, nil
}
