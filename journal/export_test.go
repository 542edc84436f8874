package journal

// Engine is for tests, which compare it with the interface of package eventlog.
type Engine = engine
