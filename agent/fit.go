package agent

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The bounds of the strings in Host.status and Daemon.status, in bytes. The API refuses a report with one string that
// does not fit, and with it all that the report says.
const (
	maxToken, maxName, maxPath, maxReason = 64, 256, 4096, 1024
	maxUUID, maxVersion, maxLog           = 128, 128, 4096
)

// fitHost makes what devices, files and processes say of themselves fit for the API.
func fitHost(s *api.HostStatus) {
	s.AgentVersion, s.BootID = token(s.AgentVersion, maxToken), token(s.BootID, maxToken)
	for i := range s.Devices {
		fitDevice(&s.Devices[i])
	}
	for i := range s.Conditions {
		s.Conditions[i].Message = fitMessage(s.Conditions[i].Message)
	}
	for i := range s.Foreign {
		f := &s.Foreign[i]
		f.ID, f.Cluster = words.Line(f.ID, 253), token(f.Cluster, 63)
		f.Data, f.Unit = words.Line(f.Data, 1024), words.Line(f.Unit, 256)
	}
}

func fitDevice(d *api.Device) {
	for _, text := range []*string{&d.Vendor, &d.Model, &d.Serial, &d.WWN} {
		*text = words.Line(*text, maxName)
	}
	d.Links, d.Holders = lines(d.Links, maxName), lines(d.Holders, maxName)
	d.MountPoints, d.Reasons = lines(d.MountPoints, maxPath), lines(d.Reasons, maxReason)
	if fs := d.Filesystem; fs != nil {
		fs.Type, fs.UUID, fs.Label = token(fs.Type, maxToken), token(fs.UUID, maxUUID), words.Line(fs.Label, maxName)
	}
	if c := d.Ceph; c != nil {
		c.FSID, c.OSDUUID, c.Part = token(c.FSID, maxToken), token(c.OSDUUID, maxToken), token(c.Part, maxToken)
	}
}

// fitDaemon makes what a process wrote and how it ended fit for the API.
func fitDaemon(s *api.DaemonStatus) {
	s.Message = fitMessage(s.Message)
	s.Version = words.Line(s.Version, maxVersion)
	s.Report, _ = fitReport(s.Report) // ask tells of one that does not fit
	if s.Started != nil {
		started := micro(s.Started.Time)
		s.Started = &started
	}
	if s.LastExit != nil {
		exit := *s.LastExit
		exit.Time = micro(exit.Time.Time)
		exit.Reason, exit.Log = words.Line(exit.Reason, maxName), words.Text(exit.Log, maxLog)
		exit.Message, exit.Next = words.Line(exit.Message, maxReason), words.Line(exit.Next, maxReason)
		s.LastExit = &exit
	}
}

// fitMessage is a message as the API has it.
func fitMessage(s string) string { return words.Cut(words.Visible(s), maxMessage) }

// fitReport is a report as the API has it. Escapes make it longer, so that it is measured with
// them.
func fitReport(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("it is no text (UTF-8)")
	}
	fit := words.JSON(s)
	if len(fit) > api.MaxReport {
		return "", fmt.Errorf("it is %d bytes long, and at most %d are taken", len(fit), api.MaxReport)
	}
	return fit, nil
}

// lines are texts of one line, each of which occurs once.
func lines(in []string, n int) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range in {
		if s = words.Line(s, n); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// token leaves out what is not in a version, a UUID or the name of a format.
func token(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:+~-", r)) {
			return r
		}
		return -1
	}, s)
	return s[:min(len(s), n)]
}

// fitAction makes what a command answered fit for the API.
func fitAction(s *api.ActionStatus) {
	s.Message, s.WaitsFor = fitMessage(s.Message), words.Cut(words.Visible(s.WaitsFor), maxReason)
	for i := range s.Steps {
		s.Steps[i].Message = words.Cut(words.Visible(s.Steps[i].Message), maxReason)
	}
}
