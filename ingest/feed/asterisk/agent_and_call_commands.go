package asterisk

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/telephony/ami"
)

// spyOptions are ChanSpy's: q: no tone; E: end with the call; w: the party whose channel it is hears
// the listener; B: both do. With u the channel is named by its unique id.
var spyOptions = map[feed.Action]string{feed.ActionListen: "qE", feed.ActionWhisper: "qEw", feed.ActionBarge: "qEB"}

// Command implements feed.Commander.
func (s *session) Command(ctx context.Context, c feed.Command) error {
	if err := feed.CheckCommand(c); err != nil {
		return err
	}

	member := ami.Field{Key: "Interface", Value: c.AgentID}
	channel := ami.Field{Key: "Channel", Value: c.CallID}
	queue := ami.Field{Key: "Queue", Value: c.QueueID}

	switch c.Action {
	case feed.ActionLogin, feed.ActionJoin:
		if c.QueueID == "" {
			return feed.CannotDo("Asterisk", c, "an agent logs in by joining a queue: queue_id is needed")
		}
		return s.order(ctx, "QueueAdd", queue, member, ami.Field{Key: "MemberName", Value: c.AgentName})
	case feed.ActionLeave:
		return s.order(ctx, "QueueRemove", queue, member)
	case feed.ActionLogout:
		return s.logout(ctx, c, member)
	case feed.ActionBreak, feed.ActionReady:
		fields := []ami.Field{member, {Key: "Paused", Value: "false"}}
		if c.Action == feed.ActionBreak {
			fields[1].Value = "true"
			fields = append(fields, ami.Field{Key: "Reason", Value: c.Reason})
		}
		return s.order(ctx, "QueuePause", fields...)
	case feed.ActionHangup:
		return s.order(ctx, "Hangup", channel)
	case feed.ActionTransfer:
		return s.transfer(ctx, c)
	case feed.ActionListen, feed.ActionBarge:
		return s.spy(ctx, c, c.CallID+",u")
	case feed.ActionWhisper:
		_, agent, err := s.parties(ctx, c)
		switch {
		case err != nil:
			return err
		case agent == "":
			return fault.Conflict("Nobody talks with the caller of the call %.80q, so nobody would hear you", c.CallID)
		}

		return s.spy(ctx, c, agent+",")
	case feed.ActionAddListener:
		return s.addListener(ctx, c)
	}

	return feed.CannotDo("Asterisk", c, "a channel cannot be held from outside")
}

// logout takes a member out of all its queues. It is refused only if each queue refuses: a
// static member of one queue still leaves the others.
func (s *session) logout(ctx context.Context, c feed.Command, member ami.Field) error {
	if len(c.Queues) == 0 {
		return feed.CannotDo("Asterisk", c, "an agent logs out by leaving its queues, and this one is in none")
	}

	var refused error
	hasLeft := false
	for _, name := range c.Queues {
		err := s.order(ctx, "QueueRemove", ami.Field{Key: "Queue", Value: name}, member)
		if err != nil && fault.KindOf(err) != fault.KindRefused {
			return err
		}
		if err != nil {
			refused = err
		} else {
			hasLeft = true
		}
	}

	if hasLeft {
		return nil
	}

	return refused
}

// beepChannel is the extension of the switch's dialplan that plays the beep of the setting listen_beep:
// a ChanSpy for both parties has no tone of its own that they hear.
const beepChannel = "Local/beep@trunkline-beep/n"

// spy rings the phone of the command's extension and has it listen to a channel, which target names as
// the beginning of ChanSpy's arguments.
func (s *session) spy(ctx context.Context, c feed.Command, target string) error {
	if err := s.beep(ctx, target); err != nil {
		return err // the parties have heard nothing
	}
	return s.order(ctx, "Originate",
		ami.Field{Key: "Channel", Value: "PJSIP/" + c.Extension},
		ami.Field{Key: "Application", Value: "ChanSpy"},
		ami.Field{Key: "Data", Value: target + spyOptions[c.Action]},
		ami.Field{Key: "Timeout", Value: "30000"}, ami.Field{Key: "CallerID", Value: "Trunkline <" + c.Extension + ">"},
		ami.Field{Key: "Async", Value: "true"}, ami.Field{Key: "ChannelId", Value: c.ID})
}

// beep plays a tone to both parties before somebody listens, with the setting listen_beep.
func (s *session) beep(ctx context.Context, target string) error {
	if !s.platform.cfg.ListenBeep {
		return nil
	}
	return s.order(ctx, "Originate", ami.Field{Key: "Channel", Value: beepChannel},
		ami.Field{Key: "Application", Value: "ChanSpy"},
		ami.Field{Key: "Data", Value: target + spyOptions[feed.ActionBarge]},
		ami.Field{Key: "Timeout", Value: "5000"})
}

// voiceSpyOptions are ChanSpy's for one voice: o: only what comes from the channel; E: end with it.
const voiceSpyOptions = "qoE"

// addListener has the switch send each voice of the call to Trunkline, as a session of an AI provider each.
func (s *session) addListener(ctx context.Context, c feed.Command) error {
	if s.platform.cfg.ListenBy == "" {
		return feed.CannotDo("Asterisk", c, "its feed has no listen_by")
	}

	caller, agent, err := s.parties(ctx, c)
	switch {
	case err != nil:
		return err
	case caller == "" || agent == "":
		return fault.Conflict("Nobody talks with the caller of the call %.80q yet", c.CallID)
	}

	if err := s.beep(ctx, c.CallID+",u"); err != nil {
		return err
	}

	err = s.sendVoice(ctx, c, caller, "caller", c.SessionID)
	if err != nil {
		return err
	}

	return s.sendVoice(ctx, c, agent, "callee", "")
}

// sendVoice sends what comes from a channel, by its name or unique id; sessionID may be "".
func (s *session) sendVoice(ctx context.Context, c feed.Command, channel, track, sessionID string) error {
	parameters := url.Values{"otherLegCallId": {c.CallID}, "track": {track}}
	for name, value := range map[string]string{"callerIdNumber": c.Caller, "sessionId": sessionID} {
		if value != "" {
			parameters.Set(name, value)
		}
	}

	separated := strings.ReplaceAll(parameters.Encode(), "&", ",")
	audio := strings.NewReplacer(feed.ListenProvider, c.ProviderID, feed.ListenParameters, separated).
		Replace(string(s.platform.cfg.ListenBy))

	options := "," + voiceSpyOptions
	if channel == c.CallID {
		options = ",u" + voiceSpyOptions
	}

	return s.order(ctx, "Originate", ami.Field{Key: "Channel", Value: audio},
		ami.Field{Key: "Application", Value: "ChanSpy"}, ami.Field{Key: "Data", Value: channel + options},
		ami.Field{Key: "Timeout", Value: "10000"}, ami.Field{Key: "Async", Value: "true"})
}

// transfer sends the caller to a destination in the context of its own channel.
func (s *session) transfer(ctx context.Context, c feed.Command) error {
	caller, _, err := s.parties(ctx, c)
	switch {
	case err != nil:
		return err
	case caller == "":
		return fault.Conflict("The call %.80q is the agent's, and there is no caller yet", c.CallID)
	}

	dialplan, err := s.variable(ctx, caller, "CHANNEL(context)")
	if err != nil {
		return err
	}

	return s.order(ctx, "Redirect", ami.Field{Key: "Channel", Value: caller},
		ami.Field{Key: "Exten", Value: c.Destination},
		ami.Field{Key: "Context", Value: dialplan}, ami.Field{Key: "Priority", Value: "1"})
}

// parties returns the channels of a call's agent and of the other party, by name or unique id; "" if
// there is none. The call is one of them.
func (s *session) parties(ctx context.Context, c feed.Command) (caller, agent string, err error) {
	name, err := s.variable(ctx, c.CallID, "CHANNEL(name)")
	if err != nil {
		return "", "", err
	}

	peer, err := s.variable(ctx, c.CallID, "BRIDGEPEER")
	if err != nil {
		return "", "", err
	}

	if c.AgentID != "" && strings.HasPrefix(name, channelOf(c.AgentID)+"-") {
		return peer, c.CallID, nil
	}

	return c.CallID, peer, nil
}

// variable returns a variable of a channel.
func (s *session) variable(ctx context.Context, channel, name string) (string, error) {
	answer, err := s.conn.Do(ctx,
		ami.Action{Name: "Getvar",
			Fields: []ami.Field{{Key: "Channel", Value: channel}, {Key: "Variable", Value: name}}})
	if err != nil {
		return "", commandError(err)
	}
	return answer.Get("Value"), nil
}

// order sends an action, without its empty fields.
func (s *session) order(ctx context.Context, action string, fields ...ami.Field) error {
	var sent []ami.Field
	for _, f := range fields {
		if f.Value != "" {
			sent = append(sent, f)
		}
	}
	_, err := s.conn.Do(ctx, ami.Action{Name: action, Fields: sent})
	return commandError(err)
}

// retryAfterSilence is the time after which a command whose answer is missing may be asked again.
const retryAfterSilence = 5 * time.Second

// commandError returns the error of an action with its kind.
func commandError(err error) error {
	var refusal *ami.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return fault.New(fault.KindRefused, "Asterisk refused: %s", refusal.Message)
	}
	return fault.Unavailable(err, retryAfterSilence, "Asterisk did not answer")
}
