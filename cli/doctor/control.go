package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// maxSkew is by how much clocks may differ; agents report the same of their hosts.
const maxSkew = 30 * time.Second

// checkQuorum looks at the members of etcd, by their leader's word, and at the servers, by their own. A standby serves nothing, and
// need not be ready.
func checkQuorum(f *Facts) []Finding {
	if errors.Is(f.QuorumErr, quorumview.ErrUnseen) || f.Quorum != nil && len(f.Quorum.Members) == 0 { // an older leader says the latter
		return finding(Warn, "the leader of etcd has not observed its members yet: it has just begun to lead", "run 'holdfast doctor' again in some seconds")
	}
	if f.Quorum == nil {
		remedy := "run 'holdfast doctor' again in some seconds: the members of etcd have a quorum, and may be electing their leader"
		if ready(f.Servers) == 0 {
			remedy = "start the servers that are down; if more than half of the members of etcd are lost for good, run 'holdfast restore'"
		}
		return finding(Fail, fmt.Sprintf("the state of the members of etcd is unknown: %v", f.QuorumErr), remedy)
	}
	found, told := badMembers(f)
	for _, s := range f.Quorum.Full {
		told[s.Name] = true
		found = append(found, Finding{
			Level: Warn, Message: fmt.Sprintf("the server %s: %s", s.Name, s.Problem),
			Remedy: "free some space there: the server notices by itself",
		})
	}
	for _, s := range f.Servers {
		switch {
		case told[s.Name], slices.Contains(f.Quorum.Standbys, s.Name):
		case s.Err != nil:
			found = append(found, Finding{
				Level: Warn, Message: fmt.Sprintf("the server %s (%s) is not ready: %v", s.Name, s.Address, s.Err),
				Remedy: s.orWait(startAgain(f, s.Name)),
			})
		case s.Took > slow:
			found = append(found, Finding{
				Level: Warn, Message: fmt.Sprintf("the server %s (%s) is ready and slow: its "+
					"answer took %s", s.Name, s.Address, roughly(s.Took)),
				Remedy: "check the load and the disk of its machine ('top' and 'iostat -x 1' there), and the network to it; do " +
					"not remove it",
			})
		}
	}
	resting := restingMembers(f)
	if all := len(f.Servers); f.Quorum.Spare-len(resting) <= 0 && all > 1 {
		text := fmt.Sprintf("%d servers, %d members", all, len(f.Quorum.Members))
		if len(resting) > 0 {
			text += "; in maintenance: " + words.Few(resting)
		}
		found = append(found, Finding{
			Level: Warn, Message: fmt.Sprintf("one more failed member of etcd stops the control plane (%s)", text),
			Remedy: "bring back the others, or join one more server ('holdfast token create --role server')",
		})
	}
	return orOK(found, "%s", counted(len(f.Servers), "no server is known", "the only server is ready", "all %d servers are ready"))
}

// slow is how long an answer takes of a server of which that is said.
const slow = 5 * time.Second

// startAgain is what to do about a server that does not do its part. Only one whose machine does
// not answer may be gone.
func startAgain(f *Facts, name string) string {
	const start = "start it ('systemctl start holdfast' there); 'journalctl -u holdfast' has the cause of its end, or " +
		"what it waits for"
	i := slices.IndexFunc(f.Servers, func(s Server) bool { return s.Name == name })
	switch {
	case i < 0:
	case f.Servers[i].Err == nil:
		return "wait, and run 'holdfast doctor' again: its server is ready; if that stays, 'journalctl -u holdfast' " +
			"there has the cause"
	case f.Servers[i].Reached && errors.Is(f.Servers[i].Err, context.DeadlineExceeded):
		return "restart it ('systemctl restart holdfast' there): it takes connections and does not answer; storage " +
			"daemons keep running"
	case f.Servers[i].Reached:
		return start
	}
	return "switch its machine on, or repair the network to it; if the machine is gone for good, 'holdfast host " +
		"remove " + name + " --gone' and join another server"
}

// restingMembers are those that work, on hosts in maintenance, which may be switched off at any time.
func restingMembers(f *Facts) (names []string) {
	for _, m := range f.Quorum.Members {
		rests := func(h api.Host) bool { return h.Name == m.Name && h.ModeOf() == api.HostMaintenance }
		if m.Voter && m.Answers && slices.ContainsFunc(f.Hosts, rests) {
			names = append(names, m.Name)
		}
	}
	return names
}

// badMembers are the voting members that do not do their part, and the names of their servers.
func badMembers(f *Facts) (found []Finding, told map[string]bool) {
	told = map[string]bool{}
	for _, m := range f.Quorum.Members {
		if m.Voter && m.Problem != "" {
			told[m.Name] = true
			found = append(found, Finding{
				Level: Warn, Message: fmt.Sprintf("the member of etcd on the server %s: %s", m.Name, m.Problem),
				Remedy: startAgain(f, m.Name),
			})
		}
	}
	return found, told
}

func checkDatabase(f *Facts) []Finding {
	if f.Database == 0 || f.Quota == 0 {
		return []Finding{{Level: Skipped, Message: "the server does not report the size of its database"}}
	}
	part := 100 * f.Database / f.Quota
	message := fmt.Sprintf("etcd's database has %s, %d %% of its limit of %s", size(uint64(f.Database)), part, size(uint64(f.Quota)))
	remedy := "find what uses the space ('kubectl get --raw /metrics | grep apiserver_storage_objects') and delete it; at 100 % nothing can be written"
	switch {
	case part >= 95:
		return finding(Fail, message, remedy)
	case part >= 70:
		return finding(Warn, message, remedy)
	}
	return ok("%s", message)
}

func checkClocks(f *Facts) []Finding {
	const remedy = "set up time synchronization there, for instance 'apt-get install chrony'"
	var found []Finding
	for _, s := range f.Servers {
		if s.Known && s.Skew.Abs() > maxSkew {
			found = append(found, Finding{
				Level: Fail, Message: fmt.Sprintf("the clocks of server %s and of this machine are %s apart", s.Name, s.Skew.Abs().Round(time.Second)),
				Remedy: remedy,
			})
		}
	}
	for i := range f.Hosts {
		if c := condition(f.Hosts[i].Status.Conditions, "ClockInSync"); c != nil && c.Status == "False" {
			found = append(found, Finding{Level: Fail, Message: fmt.Sprintf("host %s: %s", f.Hosts[i].Name, c.Message), Remedy: remedy})
		}
	}
	return orOK(found, "the clocks agree")
}

func checkTokens(f *Facts) []Finding {
	if f.TokensErr != nil {
		return []Finding{{Level: Skipped, Message: fmt.Sprintf("you may not read the tokens; ask an administrator: %v", f.TokensErr)}}
	}
	var found []Finding
	open := 0
	for _, t := range f.Tokens {
		if t.Used || f.Now.After(t.Expires) {
			continue
		}
		open++
		if t.Role == "server" {
			found = append(found, Finding{
				Level: Warn, Message: fmt.Sprintf("a join token for servers, which gives all rights, is valid until %s", t.Expires.UTC().Format(time.RFC3339)),
				Remedy: "if no server is about to join, delete it: holdfast -n holdfast-system delete secret " + t.Name,
			})
		}
	}
	return orOK(found, "%d tokens are valid, none of them for a server", open)
}

func size(bytes uint64) string {
	const units = "KMGTPE"
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return strings.Replace(fmt.Sprintf("%.1f %ciB", value, units[unit]), ".0 ", " ", 1)
}
