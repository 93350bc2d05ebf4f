package siptest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// Call is one call of a Phone.
type Call struct {
	Phone  *Phone
	Invite *sipmsg.Request  // of an incoming call
	Answer *sipmsg.Response // newest response to an outgoing call; after Dial and WaitFinal the final one
	CallID string

	local, remote string // From and To values with tags
	target        string // URI that requests are sent to: the peer's Contact, once known
	branch        string // of the phone's INVITE

	mu             sync.Mutex
	sequence       int                  // CSeq number of the phone's last request
	referred       chan *sipmsg.Request // received REFERs
	acked          chan struct{}        // closed by the first ACK, as the next two by CANCEL and BYE
	cancelReceived chan struct{}
	ended          chan struct{}
	byeReceived    *sipmsg.Request                                   // nil before ended is closed
	cancelMessage  *sipmsg.Request                                   // nil before cancelReceived is closed
	offerHandler   func(r *sipmsg.Request) (body string, status int) // as in OnOffer
}

func newCall(p *Phone, callID string) *Call {
	return &Call{
		Phone: p, CallID: callID, sequence: 1,
		referred: make(chan *sipmsg.Request, 1), acked: make(chan struct{}), cancelReceived: make(chan struct{}),
		ended: make(chan struct{}),
	}
}

// OnOffer sets the handler of re-INVITEs. It runs on a goroutine of its own and returns the body of a
// 200, or a status that refuses the offer; nil answers with PCMU.
func (c *Call) OnOffer(f func(r *sipmsg.Request) (body string, status int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offerHandler = f
}

// handleRequest handles a received request.
func (p *Phone) handleRequest(r *sipmsg.Request) {
	callID := r.CallID().Value()
	p.mu.Lock()
	c := p.dialogs[callID]
	fresh := r.Method == sipmsg.INVITE && (c == nil || isAuthenticatedRetry(r, c.Invite))
	if fresh {
		c = newCall(p, callID)
		c.Invite = r
		p.dialogs[callID] = c
	}

	onCall := p.callHandler
	p.mu.Unlock()

	switch {
	case fresh:
		c.local = r.To().Value() + ";tag=" + p.uniqueID()
		c.remote = r.From().Value()
		c.target = r.Contact().Address.String()
		p.received <- c

		if onCall == nil {
			c.Reply(r, 180, "")
			c.Accept()
			return
		}

		go onCall(c)
	case c == nil:
		return // of a call that the test no longer uses
	default:
		c.handleRequest(r)
	}
}

// isAuthenticatedRetry reports whether an INVITE repeats an earlier one with credentials.
func isAuthenticatedRetry(r, earlier *sipmsg.Request) bool {
	tag, _ := r.To().Params.Get("tag")
	return tag == "" && earlier != nil && r.CSeq().SeqNo > earlier.CSeq().SeqNo
}

func (c *Call) handleRequest(r *sipmsg.Request) {
	switch r.Method {
	case sipmsg.ACK:
		closeOnce(c, c.acked)
	case sipmsg.CANCEL:
		c.mu.Lock()
		c.cancelMessage = r
		c.mu.Unlock()
		c.Reply(r, 200, "")
		c.Reply(c.Invite, 487, "")
		closeOnce(c, c.cancelReceived)
	case sipmsg.BYE:
		c.mu.Lock()
		c.byeReceived = r
		c.mu.Unlock()
		c.Reply(r, 200, "")
		closeOnce(c, c.ended)
	case sipmsg.REFER:
		select {
		case c.referred <- r:
		default: // retransmission
		}
	case sipmsg.INVITE, sipmsg.UPDATE:
		tag, _ := r.To().Params.Get("tag")
		if tag == "" {
			return // retransmission
		}

		c.mu.Lock()
		onOffer := c.offerHandler
		c.mu.Unlock()

		go func() {
			body, status := c.Phone.audio.SDP("sendrecv", 0), 200
			if onOffer != nil {
				body, status = onOffer(r)
			}
			c.Reply(r, status, body)
		}()
	}
}

// closeOnce closes a channel of c unless it is closed.
func closeOnce(c *Call, channel chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-channel:
	default:
		close(channel)
	}
}

// Reply answers a request of the call.
func (c *Call) Reply(r *sipmsg.Request, status int, body string) { c.ReplyWith(r, status, "", body) }

// AnswerAsSecondPhone answers an incoming call a second time, as another phone behind a forking proxy would.
func (c *Call) AnswerAsSecondPhone() {
	first := c.local
	c.local = c.Invite.To().Value() + ";tag=" + c.Phone.uniqueID()
	c.Accept()
	c.local = first
}

// ReplyWith answers a request with additional headers.
func (c *Call) ReplyWith(r *sipmsg.Request, status int, headers, body string) {
	var b strings.Builder
	fmt.Fprintf(&b, "SIP/2.0 %d Whatever\r\n", status)
	for _, via := range r.GetHeaders("Via") {
		fmt.Fprintf(&b, "Via: %s\r\n", via.Value())
	}

	for _, route := range r.GetHeaders("Record-Route") {
		fmt.Fprintf(&b, "Record-Route: %s\r\n", route.Value())
	}

	to := r.To().Value()
	tag, _ := r.To().Params.Get("tag")
	if tag == "" && status > 100 {
		to = c.local
	}

	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %s\r\nContact: <sip:%s@%s>\r\nAllow: INVITE, ACK, BYE, CANCEL, UPDATE\r\n",
		r.From().Value(), to, c.CallID, r.CSeq().Value(), c.Phone.User, c.Phone.Addr())
	b.WriteString(headers)

	if body != "" {
		b.WriteString("Content-Type: application/sdp\r\n")
	}

	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	c.Phone.Write(b.String())
}

// Accept answers an incoming call with the phone's codecs.
func (c *Call) Accept(payloadTypes ...int) {
	c.Phone.audio.SetRemoteFromSDP(string(c.Invite.Body()))
	c.Reply(c.Invite, 200, c.Phone.audio.SDP("sendrecv", 0, payloadTypes...))
}

// Dial calls a user and returns the call with its final response. It sends the ACK of a 2xx.
func (p *Phone) Dial(user string, body string) *Call {
	p.t.Helper()
	c := p.SendInvite(user, body)
	c.WaitFinal()
	return c
}

// SendInvite sends an INVITE and answers its challenge.
func (p *Phone) SendInvite(user, body string) *Call {
	p.t.Helper()
	c := newCall(p, "call-"+p.uniqueID())
	uri := fmt.Sprintf("sip:%s@%s", user, p.Domain)
	c.local = fmt.Sprintf("<sip:%s@%s>;tag=%s", p.User, p.Domain, p.uniqueID())
	c.remote, c.target = "<"+uri+">", uri
	p.mu.Lock()
	p.dialogs[c.CallID] = c
	p.mu.Unlock()

	var responses <-chan *sipmsg.Response
	c.branch, responses = p.Request("INVITE", uri, c.local, c.remote, c.CallID, c.sequence, "", body)
	for {
		select {
		case r := <-responses:
			switch {
			case r.StatusCode == 407:
				c.ack(r, c.branch)
				proof := p.Authorization(r.GetHeader("Proxy-Authenticate").Value(), "INVITE", uri)
				c.sequence++
				c.branch, responses = p.Request("INVITE", uri, c.local, c.remote, c.CallID, c.sequence,
					"Proxy-Authorization: "+proof+"\r\n", body)
			case r.StatusCode >= 180:
				c.Answer = r
				return c
			}
		case <-time.After(patience):
			p.t.Fatalf("%s got no answer to its INVITE", p.User)
		}
	}
}

// WaitFinal waits for the final response.
func (c *Call) WaitFinal() *sipmsg.Response {
	p := c.Phone
	p.t.Helper()
	if c.Answer.IsProvisional() {
		p.mu.Lock()
		responses := p.waiting[c.branch+"INVITE"].responses
		p.mu.Unlock()
		c.Answer = p.WaitFinal(responses)
	}

	c.remote = c.Answer.To().Value()
	if !c.Answer.IsSuccess() {
		c.ack(c.Answer, c.branch)
		return c.Answer
	}

	c.target = c.Answer.Contact().Address.String()
	p.audio.SetRemoteFromSDP(string(c.Answer.Body()))
	c.ack(c.Answer, "z9hG4bK"+p.uniqueID())

	return c.Answer
}

// ack sends the ACK of a response. branch is that of the INVITE, or a new one if the response is a 2xx.
func (c *Call) ack(r *sipmsg.Response, branch string) {
	c.Phone.Write(c.Phone.formatRequest("ACK", c.target, branch, c.local, r.To().Value(), c.CallID, c.sequence, "", ""))
}

// Cancel sends a CANCEL.
func (c *Call) Cancel() {
	c.Phone.Write(c.Phone.formatRequest("CANCEL", c.target, c.branch, c.local, c.remote, c.CallID, c.sequence, "", ""))
}

// Send sends a request within the dialog and returns its final response. It acknowledges a 2xx to
// INVITE.
func (c *Call) Send(method, headers, body string) *sipmsg.Response {
	c.Phone.t.Helper()
	c.mu.Lock()
	c.sequence++
	sequence := c.sequence
	c.mu.Unlock()

	branch, responses := c.Phone.Request(method, c.target, c.local, c.remote, c.CallID, sequence, headers, body)
	r := c.Phone.WaitFinal(responses)
	if method == "INVITE" {
		if r.IsSuccess() {
			branch = "z9hG4bK" + c.Phone.uniqueID()
		}
		c.Phone.Write(c.Phone.formatRequest("ACK", c.target, branch, c.local, c.remote, c.CallID, sequence, "", ""))
	}

	return r
}

// Offer sends a re-INVITE without waiting. Its response is not acknowledged.
func (c *Call) Offer(body string) <-chan *sipmsg.Response {
	c.mu.Lock()
	c.sequence++
	sequence := c.sequence
	c.mu.Unlock()
	_, responses := c.Phone.Request("INVITE", c.target, c.local, c.remote, c.CallID, sequence, "", body)
	return responses
}

// Bye hangs up.
func (c *Call) Bye() *sipmsg.Response {
	c.Phone.t.Helper()
	return c.Send("BYE", "", "")
}

// WaitAck waits for the ACK to the phone's answer.
func (c *Call) WaitAck() { c.wait(c.acked, "ACK") }

// WaitCancel waits for the caller's CANCEL.
func (c *Call) WaitCancel() { c.Phone.t.Helper(); c.wait(c.cancelReceived, "CANCEL") }

// ReceivedCancel returns the received CANCEL.
func (c *Call) ReceivedCancel() *sipmsg.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelMessage
}

// WaitBye waits for the peer's BYE and returns it.
func (c *Call) WaitBye() *sipmsg.Request {
	c.Phone.t.Helper()
	c.wait(c.ended, "BYE")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byeReceived
}

// WaitRefer waits for the peer's REFER and returns it.
func (c *Call) WaitRefer() *sipmsg.Request {
	c.Phone.t.Helper()
	select {
	case r := <-c.referred:
		return r
	case <-time.After(patience):
		c.Phone.t.Fatalf("no REFER came to %s", c.Phone.User)
		return nil
	}
}

func (c *Call) wait(channel <-chan struct{}, what string) {
	c.Phone.t.Helper()
	select {
	case <-channel:
	case <-time.After(patience):
		c.Phone.t.Fatalf("no %s came to %s", what, c.Phone.User)
	}
}
