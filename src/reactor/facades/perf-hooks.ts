export default { performance, constants: {} }
