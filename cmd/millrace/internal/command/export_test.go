package command

// Lines holds all objects that --json prints.
var Lines = []any{
	journalLine{},
	tableLine{},
	schemaLine{},
	initLine{},
	topicLine{},
	trimmedLine{},
	aggregateLine{},
	headLine{},
	snapshotLine{},
	eventLine{},
	aggregateName{},
	faultLine{},
	reportLine{},
	archiveLine{},
	groupLine{},
	stoppedLine{},
	lagLine{},
	groupShardLine{},
	behindLine{},
	skippedLine{},
	editedLine{},
	bulkLine{},
	removedLine{},
	reconcilingLine{},
	modelLine{},
	generationLine{},
	progressLine{},
	droppedLine{},
	pendingLine{},
	processLine{},
	commandLine{},
	consoleLine{},
}

// Understands returns an error if a command line is wrong. It runs nothing.
func Understands(args ...string) error {
	cmd, rest, err := (&app{env: Env{Getenv: func(string) string { return "" }}}).root().Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if !cmd.Runnable() {
		return onlyCommands(cmd, cmd.Flags().Args())
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
