package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

const (
	t1 = 500 * time.Millisecond // RFC 3261, section 17.1.1.1: estimate of the round-trip time
	t2 = 4 * time.Second        // longest interval between retransmissions

	allowedMethods  = "INVITE, ACK, CANCEL, BYE, OPTIONS, UPDATE, REGISTER, NOTIFY"
	supportedOption = "timer"

	sdpType = "application/sdp"
)

// newRequest returns a request with the mandatory headers (RFC 3261, section 8.1.1). It is sent from
// the listening address, so that responses pass NAT.
func (t *transports) newRequest(method sipmsg.RequestMethod, uri sipmsg.Uri, transport string) *sipmsg.Request {
	r := sipmsg.NewRequest(method, uri)
	via := &sipmsg.ViaHeader{
		ProtocolName: "SIP", ProtocolVersion: "2.0", Transport: transport, Host: t.advertisedHost,
		Port: t.advertisedPortOf(transport),
	}
	via.Params.Add("branch", t.branches.newBranch())
	via.Params.Add("rport", "")
	r.AppendHeader(via)
	hops := sipmsg.MaxForwardsHeader(70)
	r.AppendHeader(&hops)
	r.SetTransport(transport)

	if transport == "UDP" {
		r.Laddr = sipmsg.Addr{IP: net.IP(t.boundAddr.Addr().AsSlice()), Port: int(t.boundAddr.Port())}
	}

	r.AppendHeader(sipmsg.NewHeader("User-Agent", userAgent))
	r.SetBody(nil)
	return r
}

// addDialogHeaders adds From, To, Call-ID and CSeq.
func addDialogHeaders(r *sipmsg.Request, callID string, from sipmsg.FromHeader, to sipmsg.ToHeader, sequence uint32) {
	id := sipmsg.CallIDHeader(callID)
	r.AppendHeader(&from)
	r.AppendHeader(&to)
	r.AppendHeader(&id)
	r.AppendHeader(&sipmsg.CSeqHeader{SeqNo: sequence, MethodName: r.Method})
}

// setSDP sets a message's body to a session description.
func setSDP(m sipmsg.Message, description *SDP) error {
	if description == nil {
		return nil
	}

	body, err := description.Bytes()
	if err != nil {
		return err
	}

	contentType := sipmsg.ContentTypeHeader(sdpType)
	m.AppendHeader(&contentType)
	m.SetBody(body)

	return nil
}

func (t *transports) contactHeader(user, transport string) sipmsg.ContactHeader {
	c := sipmsg.ContactHeader{Address: sipmsg.Uri{Scheme: "sip", User: user, Host: t.advertisedHost,
		Port: t.advertisedPortOf(transport)}}
	if transport != transportUDP {
		c.Address.UriParams.Add("transport", strings.ToLower(transport))
	}
	return c
}

// The transports.
const (
	transportUDP = "UDP"
	transportTCP = "TCP"
	transportTLS = "TLS"
)

// advertisedPortOf returns the announced port of a transport.
func (t *transports) advertisedPortOf(transport string) int {
	if transport == transportTLS {
		return t.advertisedTLSPort
	}
	return t.advertisedPort
}

// newInvite returns the initial INVITE of a call.
func (t *transports) newInvite(call OutgoingCall) (*sipmsg.Request, error) {
	var uri sipmsg.Uri
	if err := sipmsg.ParseUri(call.Target.URI, &uri); err != nil {
		return nil, &fault.Error{Kind: fault.KindInvalid, Message: "the address to call cannot be read", Cause: err}
	}

	transport := strings.ToUpper(cmp.Or(call.Target.Transport, uri.UriParams.GetOr("transport", "UDP")))
	if transport != transportUDP && transport != transportTCP && transport != transportTLS {
		return nil, fault.New(fault.KindUnsupported, "the transport of the address to call is not supported")
	}

	r := t.newRequest(sipmsg.INVITE, uri, transport)
	from := sipmsg.FromHeader{DisplayName: sanitizeHeader(call.From.Name),
		Address: partyURI(call.From, t.advertisedHost)}
	from.Params.Add("tag", sipmsg.GenerateTagN(16))
	to := sipmsg.ToHeader{DisplayName: sanitizeHeader(call.To.Name), Address: partyURI(call.To, uri.Host)}
	addDialogHeaders(r, cmp.Or(call.CallID, NewCallID()), from, to, 1)
	contact := t.contactHeader(call.From.User, transport)
	r.AppendHeader(&contact)
	r.AppendHeader(sipmsg.NewHeader("Allow", allowedMethods))
	r.AppendHeader(sipmsg.NewHeader("Supported", supportedOption))

	for _, h := range call.Headers {
		r.AppendHeader(sipmsg.NewHeader(h.Name, sanitizeHeader(h.Value)))
	}

	if call.Target.Destination != "" {
		r.SetDestination(call.Target.Destination)
	}

	return r, setSDP(r, call.Offer)
}

func partyURI(p Party, host string) sipmsg.Uri {
	return sipmsg.Uri{Scheme: "sip", User: EscapeUser(p.User), Host: cmp.Or(p.Host, host)}
}

// EscapeUser escapes a user part (RFC 3261, section 25.1).
func EscapeUser(user string) string {
	const free = "-_.!~*'()&=+$,;?/"
	var b strings.Builder
	for _, c := range []byte(user) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(free, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}

	return b.String()
}

// sanitizeHeader removes the characters that would end a header or a quoted string.
func sanitizeHeader(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, text)
}

// newCancel returns the CANCEL of a request, with the same headers (RFC 3261, section 9.1).
func newCancel(invite *sipmsg.Request, cause Cause) *sipmsg.Request {
	r := sipmsg.NewRequest(sipmsg.CANCEL, *invite.Recipient.Clone())
	r.AppendHeader(invite.Via().Clone())
	hops := sipmsg.MaxForwardsHeader(70)
	r.AppendHeader(&hops)
	sipmsg.CopyHeaders("Route", invite, r)
	addDialogHeaders(r, invite.CallID().Value(), cloneFrom(invite), *invite.To(), invite.CSeq().SeqNo)

	reason := cause.reasonHeader()
	if cause == LoseRace {
		reason = `SIP;cause=200;text="Call completed elsewhere"` // RFC 3326, section 1: prevents a missed-call entry
	}

	r.AppendHeader(sipmsg.NewHeader("Reason", reason))
	r.SetTransport(invite.Transport())
	r.SetDestination(invite.Destination())
	r.Laddr = invite.Laddr
	r.SetBody(nil)

	return r
}

func cloneFrom(r *sipmsg.Request) sipmsg.FromHeader {
	from := *r.From()
	from.Params = from.Params.Clone()
	return from
}

// errNoAnswer is the error of a request without a response.
var errNoAnswer = errors.New("sip: no answer")

// transact sends a request other than INVITE and returns its final response.
func (t *transports) transact(ctx context.Context, r *sipmsg.Request) (*sipmsg.Response, error) {
	tx, err := t.transactionLayer.Request(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("sending a %s: %w", r.Method, err)
	}
	defer tx.Terminate()

	for {
		select {
		case answer := <-tx.Responses():
			if !answer.IsProvisional() {
				return answer, nil
			}
		case <-tx.Done():
			return nil, errNoAnswer
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// headerValue returns the value of a header under the first of its names that is present.
func headerValue(m sipmsg.Message, names ...string) string {
	for _, name := range names {
		found := m.GetHeaders(name)
		if len(found) > 0 {
			return strings.TrimSpace(found[0].Value())
		}
	}
	return ""
}

// listsToken reports whether a header of comma-separated tokens contains token.
func listsToken(m sipmsg.Message, token string, names ...string) bool {
	for _, name := range names {
		for _, h := range m.GetHeaders(name) {
			for _, item := range strings.Split(h.Value(), ",") {
				if strings.EqualFold(strings.TrimSpace(item), token) {
					return true
				}
			}
		}
	}

	return false
}

// parseSeconds parses a header value that is a number of seconds with optional parameters.
func parseSeconds(value string) (time.Duration, bool) {
	number, _, _ := strings.Cut(value, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 31)
	return time.Duration(n) * time.Second, err == nil
}
