package sipcall

import (
	"strings"

	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// dialledNumber returns the number that was dialled to reach the provider, as given by the PBX that
// forwarded the call: the user of To, unless it is the provider's own address; else X-Dialled-Number,
// which a dialplan sets, P-Called-Party-ID (RFC 7315), Diversion (RFC 5806) or History-Info (RFC 7044),
// the first that has another address: some switches write the provider's own into these too.
func dialledNumber(invite *sip.Invite, to string) string {
	if !strings.HasPrefix(to, localcall.Prefix) {
		return to
	}

	number := strings.TrimSpace(invite.Header("X-Dialled-Number"))
	if number != "" {
		return number
	}

	for _, name := range []string{"P-Called-Party-ID", "Diversion", "History-Info"} {
		number := headerUser(invite.Header(name))
		if number != "" && !strings.HasPrefix(number, localcall.Prefix) {
			return number
		}
	}

	return to
}

// headerUser returns the user of the first address in a header such as "Bob"
// <sip:+49301@example.com;user=phone> or <tel:+49301>.
func headerUser(header string) string {
	_, inner, ok := strings.Cut(header, "<")
	if ok {
		header, _, _ = strings.Cut(inner, ">")
	}

	scheme, rest, _ := strings.Cut(header, ":")
	switch strings.ToLower(strings.TrimSpace(scheme)) {
	case "sip", "sips":
		user, _, ok := strings.Cut(rest, "@")
		if !ok {
			return ""
		}
		rest = user
	case "tel":
	default:
		return ""
	}

	number, _, _ := strings.Cut(rest, ";")
	return number
}
