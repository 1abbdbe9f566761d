package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/etcd"
)

// lingerFor is how long a server whose start failed stays for its agent.
const lingerFor = 30 * time.Second

// mender replaces the damaged files of a server's member by what the others have.
type mender struct{ *Server }

// find looks for damage before a member is started. What etcd ended with the last time counts
// where the others have the data.
func (m mender) find() bool {
	if damage := etcd.FindDamage(m.dir.etcd()); damage != nil {
		m.note(damage)
		return true
	}
	n, err := damaged.Read(string(m.dir))
	if err != nil {
		m.log.Warn("cannot read whether the member of etcd ended because of its files", "error", err)
	}
	if n != nil && n.Kept == "" && n.File == "" && m.host.openTrusted() == nil && len(m.members()) > 0 {
		m.damage = n
	}
	return m.damage != nil
}

// What a person does with a damaged file of each kind, for the end of an error.
const (
	cureShared = "if the file is damaged, copy it from pki/ of another server, all of which have the same ca.crt, " +
		"ca.key, trust.crt and encryption.key; if there is none, run 'holdfast restore FILE' with a backup"
	cureOwn = "if the file is damaged, move server.json, pki, host and etcd aside and start this server with 'holdfast " +
		"server --join TOKEN', with a token of 'holdfast token create --role server' on another server; if there is " +
		"none, run 'holdfast restore FILE' with a backup"
)

// note writes down what is damaged.
func (m mender) note(err error) {
	m.damage = &damaged.Note{Time: time.Now(), Problem: err.Error()}
	if d := (*etcd.Damage)(nil); errors.As(err, &d) {
		m.damage.File, m.damage.Problem = d.File, d.Unwrap().Error()
	}
	if err := m.damage.Write(string(m.dir)); err != nil {
		m.log.Warn("the next start checks the files of etcd again", "error", err)
	}
}

// noteEnd writes down that etcd ended because of its files, for the next start.
func (m mender) noteEnd(err error) error {
	if etcd.Broken(err) && m.settings != nil {
		m.note(err)
	}
	return err
}

// members are the other servers that count this one as a member, by the word of their quorum. It
// is theirs alone: this member does not run.
func (m mender) members() []reply {
	earlier := func(r reply) bool { return r.Generation < m.settings.Generation }
	return slices.DeleteFunc(m.askAll(m.running, m.host.others(), false), earlier)
}

// replace moves the damaged files aside when the others are known to have a quorum, and touches
// nothing before. A second damage within a day is left to a person.
func (m mender) replace() error {
	told := time.Time{}
	for ; m.running.Err() == nil; _ = pause(m.running, askEvery) {
		replies, before := m.members(), damaged.Before(string(m.dir), time.Now())
		switch {
		case slices.ContainsFunc(replies, func(r reply) bool { return r.Generation > m.settings.Generation || !r.Member }):
			m.damage = nil
			return m.standUp()
		case len(replies) > 0 && before == "":
			return m.moveAside(replies[0].from)
		case time.Since(told) < tellSilence:
		case len(replies) > 0:
			told = time.Now()
			m.log.Error("the files of this server's member of etcd are damaged again: the disk of this machine "+
				"probably fails. Check 'dmesg', replace the disk, then remove the earlier damaged copy and restart holdfast",
				"damaged", m.damage, "earlier", before)
		default:
			told = time.Now()
			m.log.Error("the files of this server's member of etcd are damaged, and no quorum of other servers can "+
				"replace them: nothing was changed; "+damaged.NextStep(string(m.dir), len(m.host.others()) == 0),
				"damaged", m.damage, "asked", m.host.others())
		}
	}
	return nil
}

func (m mender) moveAside(from string) error {
	if err := m.damage.MoveAside(string(m.dir), time.Now()); err != nil {
		return err
	}
	m.log.Warn("the files of this server's member of etcd were damaged, and were moved aside: the other servers have a "+
		"quorum, and this one gets their data", "damaged", m.damage, "kept", m.dir.file(m.damage.Kept), "quorum", from)
	return nil
}

// linger is the end of a start that failed: the agent of the host, which has begun to work, has
// some time until the next start.
func (m mender) linger(ctx context.Context, err error) {
	if m.host == nil || m.host.tell == nil || m.host.list() == nil || ctx.Err() != nil {
		return
	}
	m.leave()
	m.log.Error("this server cannot start, and ends in a moment; the agent of its host works until then",
		"moment", lingerFor, "error", err)
	_ = pause(ctx, lingerFor)
}

// wait makes a server wait whose member cannot be started on its files. Its agent works meanwhile.
func (m mender) wait(err error) error {
	m.leave()
	m.note(err)
	return m.openStandby()
}
