class Module {}
class EngineError extends Error {}
