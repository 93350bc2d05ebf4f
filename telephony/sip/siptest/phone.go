package siptest

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/telephony/sip"
)

// Phone is one user agent.
type Phone struct {
	User, Domain, Password string

	t        testing.TB
	conn     *net.UDPConn
	server   *net.UDPAddr
	audio    *Media
	received chan *Call // incoming calls

	mu          sync.Mutex
	waiting     map[string]pending // by branch and method
	dialogs     map[string]*Call   // by Call-ID
	number      int                // of the last unique id, and of the last REGISTER
	nonce       string             // of the last challenge that was answered
	nonceCount  int                // how often it was answered
	callHandler func(*Call)        // set by OnCall

	closed    chan struct{}
	resending sync.WaitGroup
}

// pending is a request without a final response.
type pending struct {
	responses chan *sipmsg.Response
	answered  chan struct{} // closed by the first response
}

// NewPhone starts a phone on loopback that uses server (host:port).
func NewPhone(t testing.TB, server, user, domain, password string) *Phone {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatalf("a phone's socket: %v", err)
	}

	remote, err := net.ResolveUDPAddr("udp4", server)
	if err != nil {
		t.Fatalf("the server's address: %v", err)
	}

	p := &Phone{
		User: user, Domain: domain, Password: password, t: t, conn: conn, server: remote, audio: newMedia(t),
		received: make(chan *Call, 16), waiting: map[string]pending{}, dialogs: map[string]*Call{},
		closed: make(chan struct{}),
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		p.read()
	}()

	t.Cleanup(func() {
		close(p.closed)
		_ = conn.Close()
		<-done
		p.resending.Wait()
		p.audio.close()
	})

	return p
}

// Media returns the phone's audio.
func (p *Phone) Media() *Media { return p.audio }

// Calls returns the channel of incoming calls.
func (p *Phone) Calls() <-chan *Call { return p.received }

// OnCall sets the handler of incoming calls, which runs on a goroutine of its own; nil rings and
// answers.
func (p *Phone) OnCall(f func(*Call)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callHandler = f
}

// patience limits the wait for a condition.
const patience = 3 * time.Minute

// WaitCall waits for an incoming call.
func (p *Phone) WaitCall() *Call {
	p.t.Helper()
	select {
	case c := <-p.received:
		return c
	case <-time.After(patience):
		p.t.Fatalf("no call came to %s", p.User)
		return nil
	}
}

// Addr returns the local address.
func (p *Phone) Addr() string { return p.conn.LocalAddr().String() }

// SetServer changes the server's address.
func (p *Phone) SetServer(server string) {
	remote, err := net.ResolveUDPAddr("udp4", server)
	if err != nil {
		p.t.Fatalf("the server's address: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = remote
}

func (p *Phone) uniqueID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	return fmt.Sprintf("%s-%d-%d", p.User, p.conn.LocalAddr().(*net.UDPAddr).Port, p.number)
}

// Write sends text unchanged.
func (p *Phone) Write(text string) {
	p.mu.Lock()
	server := p.server
	p.mu.Unlock()
	_, err := p.conn.WriteToUDP([]byte(text), server)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		p.t.Errorf("a phone's message: %v", err)
	}
}

func (p *Phone) read() {
	buffer := make([]byte, 65535)
	for {
		n, _, err := p.conn.ReadFromUDP(buffer)
		if err != nil {
			return
		}

		message, err := sipmsg.ParseMessage(append([]byte(nil), buffer[:n]...))
		if err != nil {
			p.t.Errorf("%s was sent what is no SIP: %v", p.User, err)
			continue
		}

		switch m := message.(type) {
		case *sipmsg.Response:
			branch, _ := m.Via().Params.Get("branch")
			p.mu.Lock()
			waiting, asked := p.waiting[branch+string(m.CSeq().MethodName)]
			if asked {
				select {
				case <-waiting.answered:
				default:
					close(waiting.answered)
				}
			}
			p.mu.Unlock()

			if asked {
				waiting.responses <- m
			}
		case *sipmsg.Request:
			p.handleRequest(m)
		}
	}
}

// Request sends a request and returns the channel of its responses.
func (p *Phone) Request(method, uri, from, to, callID string, sequence int,
	headers, body string) (branch string, responses <-chan *sipmsg.Response) {
	branch = "z9hG4bK" + p.uniqueID()
	return branch, p.sendUntilAnswered(method, branch,
		p.formatRequest(method, uri, branch, from, to, callID, sequence, headers, body))
}

// sendUntilAnswered sends a request, retransmits it until there is a response (RFC 3261, section 17.1), and returns
// the channel of its responses.
func (p *Phone) sendUntilAnswered(method, branch, text string) <-chan *sipmsg.Response {
	one := pending{responses: make(chan *sipmsg.Response, 32), answered: make(chan struct{})}
	p.mu.Lock()
	p.waiting[branch+method] = one
	p.mu.Unlock()

	p.Write(text)
	p.resending.Go(func() {
		for interval := 500 * time.Millisecond; interval < 16*time.Second; interval *= 2 {
			select {
			case <-one.answered:
				return
			case <-p.closed:
				return
			case <-time.After(interval):
				p.Write(text)
			}
		}
	})

	return one.responses
}

// RequestWithoutContact sends a request from and to the phone's own address, without a Contact, and returns its final
// response.
func (p *Phone) RequestWithoutContact(method, uri, headers string) *sipmsg.Response {
	p.t.Helper()
	branch := "z9hG4bK" + p.uniqueID()
	aor := fmt.Sprintf("<sip:%s@%s>", p.User, p.Domain)
	return p.WaitFinal(
		p.sendUntilAnswered(method, branch,
			fmt.Sprintf("%s %s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=%s;rport\r\nFrom: %s;tag=bare\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: 1 %s\r\n%sContent-Length: 0\r\n\r\n",
				method, uri, p.Addr(), branch, aor, aor, branch, method, headers)))
}

// features has the headers that make requests of real phones long enough to be challenged at once: a
// response to an unknown sender is shorter than the request.
const features = "User-Agent: siptest/1.0 (a phone for tests)\r\n" +
	"Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, NOTIFY, REFER, UPDATE, INFO, MESSAGE, SUBSCRIBE\r\n" +
	"Supported: replaces, timer, path, gruu, outbound\r\n"

func (p *Phone) formatRequest(method, uri, branch, from, to, callID string, sequence int, headers, body string) string {
	if body != "" {
		headers += "Content-Type: application/sdp\r\n"
	}
	if method != "ACK" {
		headers += features
	}
	return fmt.Sprintf(
		"%s %s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=%s;rport\r\nMax-Forwards: 70\r\nFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %d %s\r\nContact: <sip:%s@%s>\r\n%sContent-Length: %d\r\n\r\n%s",
		method, uri, p.Addr(), branch, from, to, callID, sequence, method, p.User, p.Addr(), headers, len(body), body)
}

// WaitFinal waits for a final response.
func (p *Phone) WaitFinal(responses <-chan *sipmsg.Response) *sipmsg.Response {
	p.t.Helper()
	for {
		select {
		case r := <-responses:
			if !r.IsProvisional() {
				return r
			}
		case <-time.After(patience):
			p.t.Fatalf("%s got no final answer", p.User)
			return nil
		}
	}
}

// Register registers the phone for expires seconds, 0 unregisters it, and returns the last response.
func (p *Phone) Register(expires int) *sipmsg.Response {
	p.t.Helper()
	aor := fmt.Sprintf("<sip:%s@%s>", p.User, p.Domain)
	callID, tag := "reg-"+p.Addr(), ";tag="+p.uniqueID()

	for attempt, authorization := 0, ""; ; attempt++ {
		p.mu.Lock()
		p.number++
		sequence := p.number
		p.mu.Unlock()

		_, responses := p.Request("REGISTER", "sip:"+p.Domain, aor+tag, aor, callID, sequence,
			fmt.Sprintf("Expires: %d\r\n%s", expires, authorization), "")
		r := p.WaitFinal(responses)
		if r.StatusCode != 401 || attempt == 2 {
			return r
		}

		authorization = "Authorization: " +
			p.Authorization(r.GetHeader("WWW-Authenticate").Value(), "REGISTER", "sip:"+p.Domain) + "\r\n"
	}
}

var challengePart = regexp.MustCompile(`(\w+)="([^"]*)"`)

// Authorization returns the Authorization value for a challenge.
func (p *Phone) Authorization(challenge, method, uri string) string {
	parts := map[string]string{}
	for _, part := range challengePart.FindAllStringSubmatch(challenge, -1) {
		parts[part[1]] = part[2]
	}

	p.mu.Lock()
	p.nonceCount++
	if p.nonce != parts["nonce"] {
		p.nonce, p.nonceCount = parts["nonce"], 1
	}

	nc := fmt.Sprintf("%08x", p.nonceCount)
	p.mu.Unlock()

	algorithm, digest := "MD5", md5Hash
	if strings.Contains(challenge, "algorithm=SHA-256") {
		algorithm, digest = "SHA-256", sha256Hash
	}

	ha1 := digest(p.User, parts["realm"], p.Password)
	response := digest(ha1, parts["nonce"], nc, "c0ffee", "auth", digest(method, uri))
	return fmt.Sprintf(
		`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", algorithm=%s, qop=auth, nc=%s, cnonce="c0ffee"`,
		p.User, parts["realm"], parts["nonce"], uri, response, algorithm, nc)
}

// HA1 returns the digest hashes of a password.
func HA1(user, realm, password string) sip.HA1 {
	return sip.HA1{MD5: md5Hash(user, realm, password), SHA256: sha256Hash(user, realm, password)}
}

func md5Hash(parts ...string) string {
	sum := md5.Sum([]byte(strings.Join(parts, ":")))
	return hex.EncodeToString(sum[:])
}

func sha256Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, ":")))
	return hex.EncodeToString(sum[:])
}
